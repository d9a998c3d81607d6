import { EventEmitter } from 'node:events';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { attemptMsOf } from './attempt-time.js';
import { calledAddress } from './carried-addresses.js';
import type { Connected, Connecting, Connector, ConnectOptions } from './connector.js';
import { ProxyTrouble, UnreachableByProxy, type EgressProxy } from './egress-proxy.js';

/** Of a name that has many. */
const mostAddresses = 3;

/** The parts that a tunnel is made with. */
interface TunnelMeans {
  proxy: EgressProxy;
  /** Gives only addresses that may be called. */
  lookUp: LookupFunction;
  /** Whether an address is called without the proxy. */
  isDirect: (address: string) => boolean;
  /** Without the proxy, or over a connection that is there already. */
  connect: Connector;
  /** 0: none. */
  timeoutMs: number;
}

/**
 * A connection in the making through the egress proxy: look up and check → CONNECT to the address → TLS with the
 * receiver, by its name.
 */
export class Tunnel extends EventEmitter implements Connecting {
  private readonly port: string;
  private readonly timer: NodeJS.Timeout | undefined;
  private step: Pick<Connecting, 'destroy' | 'waitsForOurs'> | undefined;
  private isOver = false;

  constructor(
    private readonly receiver: ConnectOptions,
    private readonly connected: Connected,
    private readonly means: TunnelMeans,
  ) {
    super();
    this.port = receiver.port || (receiver.protocol === 'https:' ? '443' : '80');
    const late = () => this.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
    this.timer = means.timeoutMs > 0 ? setTimeout(late, means.timeoutMs) : undefined;
    const { hostname } = receiver;
    // Later, so that whoever made this can listen first.
    if (isIP(hostname) !== 0) process.nextTick(() => this.ask([hostname]));
    else this.lookUp(hostname);
  }

  get waitsForOurs(): string | undefined {
    return this.isOver ? undefined : this.step?.waitsForOurs;
  }

  destroy(error = new Error('given up')): void {
    const { step, waitsForOurs } = this;
    this.end(waitsForOurs === undefined ? error : new ProxyTrouble(`no ${waitsForOurs} in time`), null);
    step?.destroy(error);
  }

  private lookUp(hostname: string): void {
    this.means.lookUp(hostname, { all: true }, (error, found) => {
      if (error) return this.end(error, null);
      const addresses = (found as { address: string }[]).map(({ address }) => address);
      this.ask(addresses.slice(0, mostAddresses));
    });
  }

  private ask([given = '', ...others]: string[]): void {
    if (this.isOver) return;
    // Loopback, the exceptions, and the rules of the proxy itself are ranges of IPv4.
    const address = calledAddress(given);
    const attemptMs = attemptMsOf(this.receiver.limitMs ?? this.means.timeoutMs);
    if (this.means.isDirect(address)) return this.connectDirectly(address, others, attemptMs);
    this.emit('connectionAttempt', address, Number(this.port));
    this.step = this.means.proxy.ask(address, this.port, attemptMs, (...result) => {
      const [error, socket] = result;
      if (error instanceof UnreachableByProxy && others.length > 0) return this.ask(others);
      if (error) return this.end(error, null);
      this.speak(socket);
    });
  }

  /**
   * Not by the name, which may have other addresses by now: those would be called without the proxy, whatever they are.
   */
  private connectDirectly(address: string, others: string[], attemptMs: number): void {
    let isAccepted = false;
    let tooLong: NodeJS.Timeout | undefined;
    const step = this.connect({ ...this.receiver, hostname: address }, (...result) => {
      clearTimeout(tooLong);
      if (result[0] && !isAccepted && others.length > 0) return this.ask(others);
      this.end(...result);
    });
    step?.on('connect', () => {
      isAccepted = true;
      clearTimeout(tooLong);
    });
    if (step && others.length > 0) tooLong = setTimeout(() => step.destroy(new Error('not accepted')), attemptMs);
  }

  private speak(socket: Socket): void {
    if (this.receiver.protocol !== 'https:') return this.end(null, socket);
    socket.on('error', () => {}); // the socket that speaks TLS over it tells of that
    this.connect({ ...this.receiver, httpSocket: socket }, (...result) => this.end(...result));
  }

  private connect(options: ConnectOptions, connected: Connected): Connecting | undefined {
    let step: Connecting | undefined;
    try {
      step = this.means.connect(options, connected);
    } catch (error) {
      options.httpSocket?.destroy();
      this.end(error as Error, null); // e.g. of a certificate that this version of Node refuses
    }
    step?.on('connectionAttempt', (...attempt) => this.emit('connectionAttempt', ...attempt));
    this.step = step;
    return step;
  }

  private end(...result: Parameters<Connected>): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    this.connected(...result);
  }
}
