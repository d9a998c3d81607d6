import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Connected } from './connector.js';
import { FailingSince } from './failing-since.js';
import { authorityOf, withoutBrackets } from './host.js';
import { isSuccess } from './success.js';

/**
 * The proxy of this installation failed: no receiver has a part in it. `message` says nothing of its URL, which holds a
 * password.
 */
export class ProxyTrouble extends Error {
  readonly code = 'EGRESS_PROXY';
}

/** The proxy works, and says that it cannot reach the receiver. */
export class UnreachableByProxy extends Error {
  readonly code = 'UNREACHABLE_BY_PROXY';
}

/** By these a proxy speaks of the receiver, not of itself (RFC 9110 §15.6.3 to §15.6.5). */
const ofReceiver: ReadonlySet<number> = new Set([502, 503, 504]);

/** An HTTP proxy, which is asked with CONNECT for a connection to an address (RFC 9110 §9.3.6). */
export class EgressProxy {
  /** By `performance.now`. */
  lastAnswerAt = -Infinity;
  /** By `address:port`: a proxy may fail for one receiver alone, and work for others. */
  private readonly failingSince = new FailingSince();
  private readonly request: typeof http.request;
  private readonly options: https.RequestOptions;
  private readonly credentials: Record<string, string>;

  /** @param url with user and password, if it wants any */
  constructor(url: string) {
    const { protocol, hostname, port, username, password } = new URL(url);
    this.request = protocol === 'https:' ? https.request : http.request;
    const host = withoutBrackets(hostname);
    // Node would take that of the `Host` header, which is the receiver's. TLS names no address (RFC 6066 §3).
    const servername = isIP(host) === 0 ? host : '';
    this.options = { host, port, method: 'CONNECT', agent: false, servername };
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const basic = `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.credentials = credentials === ':' ? {} : { 'proxy-authorization': basic };
  }

  /** For how long it has failed for that `address:port`, in milliseconds; 0: it has not. */
  failingMs(authority: string): number {
    return this.failingSince.forMs(authority);
  }

  works(authority: string): void {
    this.failingSince.end(authority);
  }

  /** @param what without its URL */
  noteFailure(authority: string, what: string): ProxyTrouble {
    this.failingSince.note(authority);
    return new ProxyTrouble(`the egress proxy failed: ${what}`);
  }

  /**
   * @param address an IP address, which the caller has checked: to the proxy nothing is left to look up
   * @param attemptMs for each address of the proxy itself
   */
  ask(address: string, port: string, attemptMs: number, connected: Connected): Asking {
    const path = authorityOf(address, port);
    const headers = { host: path, ...this.credentials };
    const options = { ...this.options, path, headers, autoSelectFamilyAttemptTimeout: attemptMs };
    const request = this.request(options);
    return new Asking(this, path, request, connected);
  }
}

/** One CONNECT that is not answered yet. */
export class Asking {
  private readonly startedAt = performance.now();
  private hasConnected = false;
  private isOver = false;

  constructor(
    private readonly proxy: EgressProxy,
    private readonly authority: string,
    private readonly request: http.ClientRequest,
    private readonly connected: Connected,
  ) {
    request.on('socket', (socket) => socket.once('connect', () => (this.hasConnected = true)));
    request.on('error', ({ code }: NodeJS.ErrnoException) => {
      // Given up, by which Node ends it with an error: whose failure that is, was decided then.
      if (!this.isOver) this.end(this.noteFailure(code ?? 'no answer'), null);
    });
    request.on('connect', (...answer) => this.read(...answer));
    request.end();
  }

  /** The part of ours that it waits for. A proxy that has answered others meanwhile waits for the receiver itself. */
  get waitsForOurs(): string | undefined {
    if (!this.hasConnected) return 'connection to the egress proxy';
    return this.proxy.lastAnswerAt < this.startedAt ? 'answer of the egress proxy' : undefined;
  }

  /** Nobody wants to know any more. */
  destroy(): void {
    if (!this.isOver && this.waitsForOurs !== undefined) this.noteFailure('it hangs');
    this.isOver = true;
    this.request.destroy();
  }

  private read({ statusCode = 0 }: http.IncomingMessage, socket: Socket, head: Buffer): void {
    this.proxy.lastAnswerAt = performance.now();
    const isConnected = isSuccess(statusCode);
    if (isConnected || ofReceiver.has(statusCode)) this.proxy.works(this.authority);
    if (isConnected) {
      if (head.length > 0) socket.unshift(head);
      return this.end(null, socket.setNoDelay(true));
    }
    socket.on('error', () => {}).destroy();
    if (ofReceiver.has(statusCode)) this.end(unreachable(statusCode), null);
    else this.end(this.noteFailure(`it answers ${statusCode} to CONNECT`), null);
  }

  private noteFailure(what: string): ProxyTrouble {
    return this.proxy.noteFailure(this.authority, what);
  }

  private end(...result: Parameters<Connected>): void {
    if (this.isOver) return;
    this.isOver = true;
    this.connected(...result);
  }
}

const unreachable = (status: number) =>
  new UnreachableByProxy(`the egress proxy cannot reach the receiver: it answers ${status} to CONNECT`);
