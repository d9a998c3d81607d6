import { LRUCache } from 'lru-cache';
import type { Outbound } from '../outbound/outbound.service.js';
import type { Call } from './call.js';
import { ConnectionsByIdentity } from './connections-by-identity.js';
import { callsSentAgain } from './delivery.counters.js';
import type { Lost } from './kept-connections.undici.js';
import { OpenCalls } from './open-calls.js';
import { sendOnOwnConnection } from './own-connection.node-http.js';
import { parseUrl, type ParsedUrl } from './parsed-url.js';
import { withoutEcho } from './without-echo.js';
import { WebhookClient, type WebhookRequest, type WebhookResponse } from './webhook-client.js';

const sweepIntervalMs = 50;

/**
 * Two ways to a receiver (docs/decisions/0027): over connections that are kept open, which costs a quarter, and on one
 * of the call's own. The second is for calls that may not arrive twice, for receivers that the first cannot understand,
 * and for what was lost on a kept connection.
 */
export class HttpWebhookClient extends WebhookClient {
  private readonly connections: ConnectionsByIdentity;
  private readonly calls: OpenCalls;
  private readonly parsed = new LRUCache<string, ParsedUrl>({ max: 10_000 });
  /** Origins that send informational responses which undici cannot skip. */
  private readonly informing = new LRUCache<string, true>({ max: 10_000 });
  private readonly sweep: NodeJS.Timeout;

  /**
   * @param now milliseconds since 1970, by the ledger's clock where there is one
   * @param useMs how long a connection is used at most
   */
  constructor(outbound: Outbound, now: () => number = Date.now, useMs?: number) {
    super();
    this.calls = new OpenCalls(outbound, now);
    this.connections = new ConnectionsByIdentity(outbound, useMs);
    // Not before what lies in the sockets is read, and by the time before that: to a process that stood still, even
    // while it read, an answer given in time must not be late.
    const endOverdue = () => {
      const now = this.calls.runningNow();
      setImmediate(() => this.calls.endOverdue(now));
    };
    this.sweep = setInterval(endOverdue, sweepIntervalMs).unref();
  }

  post(request: WebhookRequest): Promise<WebhookResponse> {
    const url = this.parsedOf(request.url);
    return new Promise((resolve) => {
      const told = (response: WebhookResponse) => resolve(withoutEcho(response, request));
      const call = this.calls.open(url?.origin ?? request.url, request, told);
      if (!url) call.fail('the callback URL is not valid', { isOurs: true });
      else if (!call.isOver) this.send(call, url, request);
    });
  }

  abandonAll(): void {
    this.calls.abandonAll();
  }

  async close(): Promise<void> {
    clearInterval(this.sweep);
    this.calls.abandonAll(); // those of whose answer the rest is still read
    await this.connections.close();
  }

  private send(call: Call, url: ParsedUrl, request: WebhookRequest): void {
    const { connector, kept } = this.connections.of(request.tls);
    const sendAlone = () => sendOnOwnConnection(call, url, request, connector);
    if (!request.mayRepeat || this.informing.has(url.origin)) return sendAlone();
    kept.send(call, url, request, (lost: Lost) => {
      if (lost === 'informational') this.informing.set(url.origin, true);
      callsSentAgain.inc({ lost });
      sendAlone();
    });
  }

  private parsedOf(url: string): ParsedUrl | undefined {
    const known = this.parsed.get(url);
    if (known) return known;
    const parsed = parseUrl(url);
    if (parsed) this.parsed.set(url, parsed);
    return parsed;
  }
}
