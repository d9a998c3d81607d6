import { LRUCache } from 'lru-cache';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import type { Settings } from '../config/settings.js';
import { RefusedAddresses } from '../infra/http/refused-addresses.js';
import { WebhookClient, type WebhookRequest, type WebhookResponse } from './webhook-client.js';

/** The body of an answer is not needed. One that is longer than this is cut off, and the attempt has failed. */
const maxResponseBytes = 1024 * 1024;
/** Kept of an answer that is no success: what an operator wants to read first. */
const excerptCharacters = 500;
const sweepIntervalMs = 50;

interface Target {
  origin: string;
  path: string;
  isRefused: boolean;
}

/**
 * `Agent.dispatch` rather than `fetch` (ten times dearer) or `request` (reads the body through a stream): see
 * docs/decisions/0008. One deadline covers connect, headers and body, so that a receiver that drips bytes gains nothing.
 */
export class UndiciWebhookClient extends WebhookClient {
  private readonly agent: Agent;
  private readonly refusedAddresses: RefusedAddresses;
  private readonly targets = new LRUCache<string, Target>({ max: 10_000 });
  private readonly calls = new Set<Call>();
  private readonly sweep: NodeJS.Timeout;

  constructor(settings: Settings) {
    super();
    this.refusedAddresses = new RefusedAddresses(settings);
    this.agent = new Agent({
      // As many connections as there are calls: windows and MAX_IN_FLIGHT bound them, and no call waits behind another.
      connections: null,
      pipelining: 1,
      connect: { timeout: settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000, lookup: this.refusedAddresses.lookup },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    // Not before what lies in the sockets is read: to a process that stood still, an answer given in time must not be late.
    this.sweep = setInterval(() => setImmediate(() => this.endOverdue()), sweepIntervalMs).unref();
  }

  post(request: WebhookRequest): Promise<WebhookResponse> {
    const target = this.targetOf(request.url);
    if (!target || target.isRefused) {
      const reason = target ? 'the address is not one callbacks may use' : 'the callback URL is not valid';
      return Promise.resolve({ kind: 'unanswered', reason, durationMs: 0, wasSent: false });
    }
    return new Promise((resolve) => {
      const call = new Call(request.timeoutMs, (response) => {
        this.calls.delete(call);
        resolve(response);
      });
      this.calls.add(call);
      try {
        const { origin, path } = target;
        this.agent.dispatch({ origin, path, method: 'POST', headers: request.headers, body: request.body }, call);
      } catch (error) {
        call.onResponseError(undefined, error as Error); // e.g. a header value HTTP does not allow
      }
    });
  }

  abandonAll(): void {
    const now = performance.now();
    for (const call of [...this.calls]) {
      call.end({ kind: 'abandoned', durationMs: now - call.startedAt, wasSent: call.wasSent });
    }
  }

  async close(): Promise<void> {
    clearInterval(this.sweep);
    await this.agent.destroy();
  }

  private targetOf(url: string): Target | undefined {
    const known = this.targets.get(url);
    if (known) return known;
    if (!URL.canParse(url)) return undefined;
    const { origin, pathname, search, hostname } = new URL(url);
    const target = { origin, path: pathname + search, isRefused: this.refusedAddresses.isRefusedHost(hostname) };
    this.targets.set(url, target);
    return target;
  }

  private endOverdue(): void {
    const now = performance.now();
    for (const call of this.calls) {
      if (call.deadline > now) continue;
      call.end({
        kind: 'unanswered',
        reason: `no complete answer within ${call.timeoutMs / 1000} s`,
        durationMs: now - call.startedAt,
        wasSent: call.wasSent,
      });
    }
  }
}

class Call implements Dispatcher.DispatchHandler {
  readonly startedAt = performance.now();
  readonly deadline: number;
  private controller: Dispatcher.DispatchController | undefined;
  private isOver = false;
  private status = 0;
  private retryAfter: string | undefined;
  private received = 0;
  private excerpt = '';

  constructor(
    readonly timeoutMs: number,
    private readonly resolve: (response: WebhookResponse) => void,
  ) {
    this.deadline = this.startedAt + timeoutMs;
  }

  /** The request may have been written: it is, right after `onRequestStart`. */
  get wasSent(): boolean {
    return this.controller !== undefined;
  }

  end(response: WebhookResponse): void {
    if (this.isOver) return;
    this.isOver = true;
    this.controller?.abort(new Error('call ended'));
    this.resolve(response);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Its time was up before there was a connection: nothing may leave any more.
    if (this.isOver) controller.abort(new Error('call ended'));
    else this.controller = controller;
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    // A header that came several times is a list, in spite of its type; nothing must break on it after the call was made.
    const retryAfter: unknown = headers['retry-after'];
    this.retryAfter = Array.isArray(retryAfter) ? String(retryAfter[0]) : headers['retry-after'];
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.received += chunk.length;
    if (this.received > maxResponseBytes) this.fail(`the answer is longer than ${maxResponseBytes} bytes`);
    else if (this.status >= 300 && this.excerpt.length < excerptCharacters) {
      this.excerpt = (this.excerpt + chunk.toString('utf8')).slice(0, excerptCharacters);
    }
  }

  onResponseEnd(): void {
    if (this.isOver) return;
    this.isOver = true;
    const { status, retryAfter, excerpt } = this;
    this.resolve({ kind: 'answered', status, retryAfter, excerpt, durationMs: this.elapsed() });
  }

  onResponseError(_: unknown, error: Error): void {
    this.fail(describe(error));
  }

  private fail(reason: string): void {
    this.end({ kind: 'unanswered', reason, durationMs: this.elapsed(), wasSent: this.wasSent });
  }

  private elapsed(): number {
    return performance.now() - this.startedAt;
  }
}

/** The error's code where it has one: stable, and without addresses or texts that vary. */
function describe(error: Error): string {
  const code = codeOf(error.cause) ?? codeOf(error);
  return code ? `${code}: ${error.message}` : error.message;
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
