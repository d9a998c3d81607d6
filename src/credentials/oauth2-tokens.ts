import { Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { isTroubleOfMachine } from '../outbound/describe-error.js';
import { ProxyTrouble } from '../outbound/egress-proxy.js';
import type { Outbound, TlsIdentity } from '../outbound/outbound.service.js';
import { Refused } from '../outbound/refused.js';
import type { OAuth2Authorization } from './credentials.js';
import { readToken, type TokenResult } from './read-token.js';
import { basic, requestToken } from './token-request.node-http.js';
import type { Unavailable } from './unavailable.js';
import { endOf, whyKeyUnusable } from './usable-key.js';

/** A token is not used in its last seconds: the call it is for takes its time. */
const lastSecondsMs = 10_000;
/** When this part of its time is over, the next one is fetched while this one is still used. */
const refreshedAfter = 0.75;
/** After a failure the endpoint is left alone for so long, twice as long after each further one. */
const [firstPauseMs, longestPauseMs] = [1000, 60_000];
/** After so long without a failure the next one is the first of another trouble: nobody asked meanwhile. */
const sameTroubleMs = 600_000;
/** A token that a receiver refused is replaced, but not all the time: perhaps the receiver refuses every token. */
const replacedAfterMs = 30_000;

/**
 * While a token endpoint has not answered for so long, calls that need its token are postponed at once: thousands of
 * deliveries would wait in the lines that all receivers share.
 */
const patienceMs = 1000;

/** By each of the clocks that the age of a token is taken from. */
type Moment = readonly number[];

/** The state of one set of credentials, however many subscriptions have it. */
interface Known {
  token?: { value: string; askedAt: Moment; refreshAfterMs: number; endsAfterMs: number } | undefined;
  fetching?: { since: number; done: Promise<void> } | undefined;
  failure?:
    | {
        reason: string;
        isRefused: boolean;
        isOurs: boolean;
        since: number;
        lastAt: number;
        times: number;
        pauseUntil: number;
      }
    | undefined;
}

/**
 * Tokens of OAuth 2.0 client credentials, in memory. Each is fetched once for all that wait for it, and the next one
 * before its end.
 */
export class OAuth2Tokens {
  private readonly logger = new Logger('Credentials');
  private readonly known = new LRUCache<string, Known>({ max: 10_000 });
  private readonly ids = new WeakMap<OAuth2Authorization, string>();
  private readonly closing = new AbortController();

  /**
   * @param now milliseconds since 1970, and what all pauses are counted by
   * @param ledgerNow the same by the ledger's clock, which certificates end by
   * @param others clocks that go on where the first stands still, as the ledger's does; a token is as old as the one
   *   says by which most time has passed
   */
  constructor(
    private readonly outbound: Outbound,
    private readonly now: () => number,
    private readonly ledgerNow: () => number,
    private readonly others: readonly (() => number)[] = [],
  ) {}

  close(): void {
    this.closing.abort();
  }

  /** The value of the `Authorization` header. A promise only where there is no token yet; it never rejects. */
  authorizationFor(credentials: OAuth2Authorization): string | Unavailable | Promise<string | Unavailable> {
    const known = this.knownOf(credentials);
    const now = this.now();
    const { token, failure } = known;
    const mayFetch = !failure || now >= failure.pauseUntil;
    const ageMs = token ? this.ageOf(token.askedAt) : 0;
    if (token && ageMs < token.endsAfterMs) {
      if (ageMs >= token.refreshAfterMs && mayFetch) void this.fetch(credentials, known);
      return token.value;
    }
    if (!mayFetch) return this.unavailable(failure, now);
    const { fetching } = known;
    if (fetching && now - fetching.since >= patienceMs) {
      // It may have failed all day before: how long decides when a delivery is tried again, and when it is given up.
      const since = failure && this.isSame(failure, now) ? failure.since : fetching.since;
      const reason = 'the token endpoint has not answered yet';
      return { reason, isRefused: false, forMs: now - since, againInMs: patienceMs };
    }
    return this.fetch(credentials, known).then(() => this.fetched(known));
  }

  /**
   * A receiver answered 401 to a call with this authorization.
   * @returns whether the next call gets another one
   */
  refused(credentials: OAuth2Authorization, authorization: string): boolean {
    const known = this.knownOf(credentials);
    const { token } = known;
    if (token?.value !== authorization) return true;
    if (this.ageOf(token.askedAt) < replacedAfterMs) return false;
    known.token = undefined;
    return true;
  }

  private moment(): Moment {
    return [this.now, this.ledgerNow, ...this.others].map((clock) => clock());
  }

  private ageOf(moment: Moment): number {
    return Math.max(...this.moment().map((now, nr) => now - moment[nr]!));
  }

  private knownOf(credentials: OAuth2Authorization): Known {
    let id = this.ids.get(credentials);
    if (id === undefined) {
      const { tokenUrl, clientId, clientSecret, scope, clientAuthentication, tokenTls } = credentials;
      const all = [tokenUrl, clientId, clientSecret, scope, clientAuthentication, tokenTls];
      id = createHash('sha256').update(JSON.stringify(all)).digest('base64url');
      this.ids.set(credentials, id);
    }
    let known = this.known.get(id);
    if (!known) this.known.set(id, (known = {}));
    return known;
  }

  private fetched({ token, failure }: Known): string | Unavailable {
    const now = this.now();
    // One that was in its last seconds from the start serves the calls that waited for it.
    if (token && !failure) return token.value;
    return this.unavailable(failure!, now);
  }

  private unavailable(
    { reason, isRefused, isOurs, since, pauseUntil }: NonNullable<Known['failure']>,
    now: number,
  ): Unavailable {
    return { reason, isRefused, isOurs, forMs: now - since, againInMs: Math.max(pauseUntil - now, 0) };
  }

  private isSame({ lastAt }: NonNullable<Known['failure']>, now: number): boolean {
    return now - lastAt < sameTroubleMs;
  }

  /** One for all. */
  private fetch(credentials: OAuth2Authorization, known: Known): Promise<void> {
    known.fetching ??= {
      since: this.now(),
      done: this.fetchOnce(credentials, known).finally(() => (known.fetching = undefined)),
    };
    return known.fetching.done;
  }

  private async fetchOnce(credentials: OAuth2Authorization, known: Known): Promise<void> {
    const askedAt = this.moment();
    const result = await this.ask(credentials);
    const now = this.now();
    const { tokenUrl, clientId } = credentials;
    if (result.kind === 'token') {
      const { token, lastsMs } = result;
      const endsAfterMs = lastsMs - Math.min(lastSecondsMs, lastsMs / 4);
      const refreshAfterMs = Math.min(lastsMs * refreshedAfter, endsAfterMs);
      known.token = { value: `Bearer ${token}`, askedAt, refreshAfterMs, endsAfterMs };
      known.failure = undefined;
      return;
    }
    const { failure } = known;
    const { since, times } = failure && this.isSame(failure, now) ? failure : { since: now, times: 0 };
    const pauseMs = Math.min(firstPauseMs * 2 ** times, longestPauseMs);
    const reason = `the token endpoint ${new URL(tokenUrl).origin} ${result.reason}`;
    known.failure = {
      reason,
      isRefused: result.isRefused,
      isOurs: result.isOurs === true,
      since,
      lastAt: now,
      times: times + 1,
      pauseUntil: now + pauseMs,
    };
    this.logger.warn({
      event: 'credentials.no-token',
      tokenEndpoint: withoutQuery(tokenUrl),
      clientId,
      reason,
      isRefused: result.isRefused,
    });
  }

  private whyEnded(identity: TlsIdentity): string | undefined {
    const endsAt = endOf(identity);
    if (endsAt > this.ledgerNow()) return undefined;
    return `its client certificate ended at ${new Date(endsAt).toISOString()}`;
  }

  private async ask(credentials: OAuth2Authorization): Promise<TokenResult> {
    const { tokenTls } = credentials;
    const unusable = tokenTls && (this.whyEnded(tokenTls) ?? whyKeyUnusable(tokenTls));
    if (unusable) return { kind: 'none', reason: `is not asked: ${unusable}`, isRefused: true };
    try {
      const connect = this.outbound.connectorFor(tokenTls ?? undefined);
      return readToken(await requestToken(credentials, connect, this.closing.signal), secretsOf(credentials));
    } catch (error) {
      const { code, message, name } = error as Error & { code?: string };
      if (error instanceof Refused) return { kind: 'none', reason: `is refused: ${message}`, isRefused: true };
      if (name === 'TimeoutError') return { kind: 'none', reason: 'does not answer in time', isRefused: false };
      const isOurs = error instanceof ProxyTrouble || isTroubleOfMachine(error as Error) || this.closing.signal.aborted;
      return { kind: 'none', reason: `cannot be used: ${code ?? message}`, isRefused: false, isOurs };
    }
  }
}

/** In every form in which the token endpoint is shown its client's secret. */
function secretsOf({ clientId, clientSecret }: OAuth2Authorization): string[] {
  const authorization = basic(clientId, clientSecret);
  const inForm = new URLSearchParams({ '': clientSecret }).toString().slice(1);
  return [authorization.slice(authorization.indexOf(' ') + 1), clientSecret, inForm];
}

/** Some providers want a key in it. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
