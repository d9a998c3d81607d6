import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { withoutBrackets } from './host.js';

/** A connection in the making: nothing can be written yet, but it can be given up. */
export interface Connecting {
  /** With the IP address of the receiver, and the port, that are tried. */
  on(event: 'connectionAttempt', listener: (address: string, port: number) => void): unknown;
  /** The other side has accepted it, before any TLS. Not told of a connection through the egress proxy. */
  on(event: 'connect', listener: () => void): unknown;
  /** The callback gets the error, unless it was called before. */
  destroy(error?: Error): unknown;
  /**
   * The part of ours that it waits for, for which the receiver is not to blame; undefined: it waits for the receiver.
   */
  readonly waitsForOurs?: string | undefined;
}

/**
 * Makes one connection and calls back once: when a request can be written, or with an error. Undefined: nothing is
 * being made, the error has been told.
 */
export type Connector = (options: ConnectOptions, connected: Connected) => Connecting | undefined;

/** To whom a connection is to be made, in undici's form. */
export type ConnectOptions = buildConnector.Options & {
  /** Milliseconds of the call that waits for it; not given: as the connector was made for. */
  limitMs?: number | undefined;
};
export type Connected = buildConnector.Callback;

/**
 * A connection for the caller's own use, which the caller destroys.
 * @param signal gives it up; the error is its reason, or that of ours which it waited for
 * @param tried gets the IP addresses of the receiver, each before it is tried
 */
export function connectTo(connect: Connector, url: URL, signal: AbortSignal, tried: string[] = []): Promise<Socket> {
  const { protocol, host, hostname, port } = url;
  return new Promise((resolve, reject) => {
    const stop = () => connecting?.destroy(signal.reason as Error);
    const options = { protocol, host, hostname: withoutBrackets(hostname), port };
    const connecting = connect(options, (error, socket) => {
      signal.removeEventListener('abort', stop);
      if (error) reject(error);
      else resolve(socket);
    });
    connecting?.on('connectionAttempt', (address) => tried.push(address));
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
  });
}
