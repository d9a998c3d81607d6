import type { IncomingHttpHeaders } from 'node:http';
import type { HeaderList } from './response-with-headers.js';

/**
 * The headers that our APIs read from a request, and those that they answer with: a browser hides all others from a
 * page. Of a page that is traced also those that go with `traceparent` and are not read: the browser keeps back a
 * request that brings one header more than these.
 */
const [sent, shown] = [
  [
    'authorization',
    'content-type',
    'idempotency-key',
    'x-request-id',
    'deliver-after',
    'if-match',
    'if-none-match',
    'last-event-id',
    'traceparent',
    'tracestate',
    'baggage',
  ],
  [
    'location',
    'api-version',
    'notification-id',
    'duplicate-of',
    'idempotent-replayed',
    'retry-after',
    'x-request-id',
    'etag',
    'signing-secret',
  ],
].map((names) => names.join(', ')) as [string, string];

/** So long a browser need not ask again; none remembers longer than two hours. */
const rememberedSeconds = 7200;

/**
 * Lets pages of other origins call this server from a browser (Fetch standard, CORS protocol). Without cookies: a page
 * that has no token can do no more than anybody. The path and its methods stay the business of the router, so that a
 * preflight is answered with those that the path has.
 */
export class Cors {
  private readonly origins: ReadonlySet<string>;
  private readonly isForAll: boolean;

  /** @param origins as CORS_ALLOWED_ORIGINS has them; `*` is all */
  constructor(origins: readonly string[]) {
    this.origins = new Set(origins);
    this.isForAll = this.origins.has('*');
  }

  /** For every answer. */
  headersOf({ origin }: IncomingHttpHeaders): HeaderList {
    if (this.isForAll) return ['access-control-allow-origin', '*', 'access-control-expose-headers', shown];
    // Also where there is no origin: a cache must not answer a page with what it keeps for another.
    const vary = ['vary', 'Origin'];
    if (origin === undefined || !this.origins.has(origin)) return vary;
    return [...vary, 'access-control-allow-origin', origin, 'access-control-expose-headers', shown];
  }

  /** For the answer to OPTIONS; none where it is no preflight, or its origin is not allowed. */
  preflightHeadersOf(headers: IncomingHttpHeaders, methods: string): Record<string, string> {
    const isAllowed = headers.origin !== undefined && (this.isForAll || this.origins.has(headers.origin));
    if (!isAllowed || headers['access-control-request-method'] === undefined) return {};
    return {
      'access-control-allow-methods': methods,
      'access-control-allow-headers': sent,
      'access-control-max-age': String(rememberedSeconds),
    };
  }
}
