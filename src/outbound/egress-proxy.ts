import * as http from 'node:http';
import * as https from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import type { Connected } from './connector.js';

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
  private readonly request: typeof http.request;
  private readonly options: http.RequestOptions;
  private readonly credentials: Record<string, string>;

  /** @param url with user and password, if it wants any */
  constructor(url: string) {
    const { protocol, hostname, port, username, password } = new URL(url);
    this.request = protocol === 'https:' ? https.request : http.request;
    this.options = { host: hostname.replace(/^\[|\]$/g, ''), port, method: 'CONNECT', agent: false };
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const basic = `Basic ${Buffer.from(credentials).toString('base64')}`;
    this.credentials = credentials === ':' ? {} : { 'proxy-authorization': basic };
  }

  /** @param address an IP address, which the caller has checked: to the proxy nothing is left to look up */
  ask(address: string, port: string, connected: Connected): Asking {
    const path = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
    const request = this.request({ ...this.options, path, headers: { host: path, ...this.credentials } });
    return new Asking(this, request, connected);
  }
}

/** One CONNECT that is not answered yet. */
export class Asking {
  private readonly startedAt = performance.now();
  private hasConnected = false;
  private isOver = false;

  constructor(
    private readonly proxy: EgressProxy,
    private readonly request: http.ClientRequest,
    private readonly connected: Connected,
  ) {
    request.on('socket', (socket) => socket.once('connect', () => (this.hasConnected = true)));
    request.on('error', ({ code }: NodeJS.ErrnoException) => this.end(failed(code ?? 'no answer'), null));
    request.on('connect', (...answer) => this.read(...answer));
    request.end();
  }

  /** What of ours it waits for. A proxy that has answered others meanwhile waits for the receiver itself. */
  get waitsForOurs(): string | undefined {
    if (!this.hasConnected) return 'connection to the egress proxy';
    return this.proxy.lastAnswerAt < this.startedAt ? 'answer of the egress proxy' : undefined;
  }

  /** Nobody wants to know any more. */
  destroy(): void {
    this.isOver = true;
    this.request.destroy();
  }

  private read({ statusCode = 0 }: http.IncomingMessage, socket: Socket, head: Buffer): void {
    this.proxy.lastAnswerAt = performance.now();
    if (statusCode >= 200 && statusCode < 300) {
      if (head.length > 0) socket.unshift(head);
      return this.end(null, socket.setNoDelay(true));
    }
    socket.on('error', () => {}).destroy();
    const error = ofReceiver.has(statusCode) ? unreachable(statusCode) : failed(`it answers ${statusCode} to CONNECT`);
    this.end(error, null);
  }

  private end(...result: Parameters<Connected>): void {
    if (this.isOver) return;
    this.isOver = true;
    this.connected(...result);
  }
}

const failed = (what: string) => new ProxyTrouble(`the egress proxy failed: ${what}`);
const unreachable = (status: number) =>
  new UnreachableByProxy(`the egress proxy cannot reach the receiver: it answers ${status} to CONNECT`);
