import { isIPv6, type Socket } from 'node:net';
import type { buildConnector } from 'undici';
import type { Connector } from '../outbound/outbound.service.js';

/** A connection to a receiver: where it leads, what it took to make, and how many calls were begun on it. */
export class Connection {
  /** `IP:port`; while it is being made, the address that is tried. */
  address: string | null = null;
  connectMs: number | null = null;
  calls = 0;
  private socket: Socket | undefined;
  private isConnecting = false;

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
    const done: buildConnector.Callback = (...[error, socket]) => {
      this.isConnecting = false;
      if (error) return callback(error, null);
      this.connectMs = performance.now() - startedAt;
      this.address = hostAndPort(socket.remoteAddress, socket.remotePort) ?? this.address;
      callback(null, socket);
    };
    this.isConnecting = true;
    try {
      this.socket = this.connector(options, done);
    } catch (error) {
      return done(error as Error, null); // e.g. of a certificate that this version of Node refuses
    }
    this.socket?.on('connectionAttempt', (ip: string, port: number) => {
      this.address = hostAndPort(ip, port);
    });
  };

  /** Nobody waits for it any more. Does nothing once it is made. */
  stopConnecting(): void {
    if (this.isConnecting) this.cut();
  }

  /** Closes it at once, whatever is still to come over it. */
  cut(): void {
    this.socket?.destroy(new Error('the call is over'));
  }
}

function hostAndPort(ip: string | undefined, port: number | undefined): string | null {
  if (ip === undefined || port === undefined) return null;
  return isIPv6(ip) ? `[${ip}]:${port}` : `${ip}:${port}`;
}
