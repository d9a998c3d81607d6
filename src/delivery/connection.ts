import { TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Connecting, Connector } from '../outbound/connector.js';
import { authorityOf } from '../outbound/host.js';
import { AddressRefused } from '../outbound/refused.js';

/**
 * Connections that nobody waits for any more are closed with this error. There is one for all, and its stack is written
 * already: Node writes the stack of each error that closes a socket, for which it first reads a source map, and
 * hundreds of calls may end at once.
 */
export const callIsOver = Object.assign(new Error('the call is over'), { stack: 'Error: the call is over' });

const closedCodes: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

/** Whether the connection was closed by the other side, and nothing else is known. */
export const isClosed = ({ code }: Error & { code?: unknown }): boolean =>
  typeof code === 'string' && closedCodes.has(code);

/** A connection to a receiver: where it leads, what it took to make, and how many calls were begun on it. */
export class Connection {
  /** `IP:port`; while it is being made, the address that is tried. Where it was refused, without the port. */
  address: string | null = null;
  connectMs: number | null = null;
  /** By `performance.now()`. */
  madeAt: number | null = null;
  calls = 0;
  /** Milliseconds of the call that it is made for. */
  limitMs: number | undefined;
  /**
   * Once it is made: the receiver has asked for a client certificate. It may refuse the one that it got, or the lack of
   * one, by closing the connection: with TLS 1.3 only after this side takes the connection for made, and often without
   * a word. Not where it resumes a session that the receiver has accepted before.
   */
  hasAskedForCertificate = false;
  /** The attempt to connect; once that has succeeded, its socket. */
  private made: Pick<Connecting, 'destroy' | 'waitsForOurs'> | undefined;
  private isConnecting = false;
  private hostname = '';

  constructor(private readonly connector: Connector) {}

  /**
   * In the form that undici wants. Calls back when a request can be written: with TLS, when the certificate was
   * checked.
   */
  readonly connect: buildConnector.connector = (options, callback) => {
    const startedAt = performance.now();
    this.calls = 0;
    this.connectMs = null;
    this.madeAt = null;
    this.address = null;
    this.hasAskedForCertificate = false;
    this.hostname = options.hostname;
    const done: buildConnector.Callback = (...[error, socket]) => {
      this.isConnecting = false;
      if (error instanceof AddressRefused) this.address = error.address;
      if (error) return callback(error, null);
      this.madeAt = performance.now();
      this.connectMs = this.madeAt - startedAt;
      this.made = socket;
      // The receiver's own TLS: that of an egress proxy is beneath it.
      const isSecure = options.protocol === 'https:' && socket instanceof TLSSocket;
      this.hasAskedForCertificate = isSecure && wasAskedForCertificate(socket);
      callback(null, socket);
    };
    this.isConnecting = true;
    let connecting: Connecting | undefined;
    try {
      connecting = this.connector({ ...options, limitMs: this.limitMs }, done);
    } catch (error) {
      return done(error as Error, null); // e.g. of a certificate that this version of Node refuses
    }
    this.made = connecting;
    connecting?.on('connectionAttempt', (ip, port) => {
      this.address = authorityOf(ip, port);
    });
  };

  /** While it is being made: what of ours it waits for, for which the receiver is not to blame. */
  get waitsForOurs(): string | undefined {
    return this.isConnecting ? this.made?.waitsForOurs : undefined;
  }

  /** While it is being made: the name whose addresses are not known yet. */
  get lookingUp(): string | undefined {
    return this.isConnecting && this.address === null ? this.hostname : undefined;
  }

  /** Nobody waits for it any more. Does nothing once it is made. */
  stopConnecting(): void {
    if (this.isConnecting) this.cut();
  }

  /** Closes it at once, whatever is still to come over it. */
  cut(): void {
    this.made?.destroy(callIsOver);
  }
}

/**
 * A server that asks for a certificate says with which algorithms it may be signed, and only then does a client know
 * any that both have.
 */
const wasAskedForCertificate = (socket: TLSSocket): boolean => (socket.getSharedSigalgs() ?? []).length > 0;
