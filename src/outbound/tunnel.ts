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
    if (this.means.isDirect(address)) return this.connect({ ...this.receiver, hostname: address });
    this.emit('connectionAttempt', address, Number(this.port));
    const attemptMs = attemptMsOf(this.receiver.limitMs ?? this.means.timeoutMs);
    this.step = this.means.proxy.ask(address, this.port, attemptMs, (...result) => {
      const [error, socket] = result;
      if (error instanceof UnreachableByProxy && others.length > 0) return this.ask(others);
      if (error) return this.end(error, null);
      this.speak(socket);
    });
  }

  private speak(socket: Socket): void {
    if (this.receiver.protocol !== 'https:') return this.end(null, socket);
    socket.on('error', () => {}); // the socket that speaks TLS over it tells of that
    this.connect({ ...this.receiver, httpSocket: socket });
  }

  private connect(options: ConnectOptions): void {
    const step = this.means.connect(options, (...result) => this.end(...result));
    step?.on('connectionAttempt', (...attempt) => this.emit('connectionAttempt', ...attempt));
    this.step = step;
  }

  private end(...result: Parameters<Connected>): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    this.connected(...result);
  }
}
