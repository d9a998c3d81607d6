import type { buildConnector } from 'undici';
import type { Connecting, Connector } from '../outbound/connector.js';
import { authorityOf } from '../outbound/host.js';
import { AddressRefused } from '../outbound/refused.js';

/**
 * Connections that nobody waits for any more are closed with this error. There is one for all, and its stack is written already: Node writes the stack of each error
 * that closes a socket, for which it first reads a source map, and hundreds of calls may end at once.
 */
export const callIsOver = Object.assign(new Error('the call is over'), { stack: 'Error: the call is over' });

/** A connection to a receiver: where it leads, what it took to make, and how many calls were begun on it. */
export class Connection {
  /** `IP:port`; while it is being made, the address that is tried. Where it was refused, without the port. */
  address: string | null = null;
  connectMs: number | null = null;
  calls = 0;
  /** What it is made of so far; once it is made, its socket. */
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
    this.address = null;
    this.hostname = options.hostname;
    const done: buildConnector.Callback = (...[error, socket]) => {
      this.isConnecting = false;
      if (error instanceof AddressRefused) this.address = error.address;
      if (error) return callback(error, null);
      this.connectMs = performance.now() - startedAt;
      this.made = socket;
      callback(null, socket);
    };
    this.isConnecting = true;
    let connecting: Connecting | undefined;
    try {
      connecting = this.connector(options, done);
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
