import { Injectable, Logger } from '@nestjs/common';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { idempotencyCounted } from './idempotency.counters.js';
import { IdempotencyStore, type Acquired } from './idempotency-store.js';

/** Only a final outcome is remembered; after any other the next caller runs the handler again. */
export interface Handled<Outcome> {
  outcome: Outcome;
  isFinal: boolean;
}

export type Done<Outcome> =
  | { kind: 'executed'; outcome: Outcome }
  /** Done before: this is what came of it then. */
  | { kind: 'replayed'; outcome: Outcome }
  /** Somebody else is doing it right now. */
  | { kind: 'in-flight' }
  /** Done before, with another request under the same key. */
  | { kind: 'mismatch' };

export interface IdempotentOptions<Request> {
  /** Part of the key: `i9y:<operation>:<id>`. */
  operation: string;
  lockTtlMs: number;
  keepTtlMs: (request: Request) => number;
  mayTakeOver: boolean;
  /** Fingerprint by which a different request under the same key is noticed; the request itself is not stored. */
  hashRequest?: (request: Request) => string;
}

export interface Idempotent<Request, Outcome> {
  do(id: string, request: Request): Promise<Done<Outcome>>;
}

/** A lock is renewed when this part of its life is over: in time for a second try. */
const extendAfter = 0.7;

/** In this process, whoever makes them: no two tokens are the same. */
let calls = 0;

/**
 * Makes handlers idempotent: of all callers with the same key one runs, the others get its outcome or learn that it is
 * under way.
 *
 *   unlocked ──acquire──▶ locked ──seal──▶ sealed ──TTL──▶ unlocked
 *      ▲                    │
 *      └── release, TTL ────┘      (and takeover: locked, owner not alive ──▶ locked by somebody else)
 *
 * Storage lives behind IdempotencyStore. Rejects when the store does not answer at the start (nothing was run then), or
 * when the handler does. Once the handler has run, its outcome is given, even if it could not be sealed.
 */
@Injectable()
export class Idempotency {
  private readonly logger = new Logger(Idempotency.name);
  /** Tokens of callers the store did not answer, by key: it may have given them the key all the same. */
  private readonly unanswered = new Map<string, string>();

  constructor(
    private readonly store: IdempotencyStore,
    private readonly heartbeat: Heartbeat,
  ) {}

  make<Request, Outcome>(
    handler: (request: Request) => Promise<Handled<Outcome>>,
    options: IdempotentOptions<Request>,
  ): Idempotent<Request, Outcome> {
    return { do: (id, request) => this.once(`i9y:${options.operation}:${id}`, request, handler, options) };
  }

  private async once<Request, Outcome>(
    key: string,
    request: Request,
    handler: (request: Request) => Promise<Handled<Outcome>>,
    options: IdempotentOptions<Request>,
  ): Promise<Done<Outcome>> {
    const token = this.unanswered.get(key) ?? `${this.heartbeat.processId}/${++calls}`;
    this.unanswered.delete(key);
    const requestHash = options.hashRequest?.(request) ?? null;
    const { lockTtlMs: ttlMs, mayTakeOver } = options;
    const claim = { key, token, ttlMs, requestHash, mayTakeOver };
    const acquired = await this.store.acquire(claim).catch((error: unknown) => {
      // With another, the next try would wait for this one's lock to expire; of several, the first to ask may have got it.
      if (!this.unanswered.has(key)) this.unanswered.set(key, token);
      throw error;
    });
    if (acquired.kind !== 'acquired') return this.answer(acquired, requestHash, options.operation);
    idempotencyCounted.inc({ operation: options.operation, result: acquired.takenOver ? 'takeover' : 'miss' });
    const extending = setInterval(() => {
      this.store
        .extend(key, token, ttlMs)
        .then((mine) => mine || this.reportLate(key))
        .catch((error: unknown) => this.logger.warn({ event: 'idempotency.extend-failed', key, error }));
    }, ttlMs * extendAfter);
    try {
      const { outcome, isFinal } = await handler(request);
      await this.leave(key, () =>
        isFinal ? this.store.seal(key, token, outcome, options.keepTtlMs(request)) : this.store.release(key, token),
      );
      return { kind: 'executed', outcome };
    } catch (error) {
      await this.leave(key, () => this.store.release(key, token));
      throw error;
    } finally {
      clearInterval(extending);
    }
  }

  /** What cannot be written now ends with the lock's TTL. The outcome stands either way. */
  private async leave(key: string, write: () => Promise<boolean>): Promise<void> {
    try {
      if (!(await write())) this.reportLate(key);
    } catch (error) {
      this.logger.warn({ event: 'idempotency.seal-failed', key, error });
    }
  }

  private answer<Outcome>(
    acquired: Exclude<Acquired, { kind: 'acquired' }>,
    requestHash: string | null,
    operation: string,
  ): Done<Outcome> {
    if (acquired.kind === 'locked') {
      idempotencyCounted.inc({ operation, result: 'in-flight' });
      return { kind: 'in-flight' };
    }
    if (acquired.requestHash !== requestHash) {
      idempotencyCounted.inc({ operation, result: 'mismatch' });
      return { kind: 'mismatch' };
    }
    idempotencyCounted.inc({ operation, result: 'hit' });
    return { kind: 'replayed', outcome: acquired.outcome as Outcome };
  }

  /** The lock had expired or was taken over, so somebody else may have run the handler as well. */
  private reportLate(key: string): void {
    this.logger.warn({ event: 'idempotency.lock-lost', key });
  }
}
