import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { idempotencyCounted } from './idempotency.counters.js';
import { IdempotencyStore, type LockAnswer } from './idempotency-store.js';
import { OwnLocks, type Lock } from './lock.js';

export interface OperationOptions<Request> {
  /** Part of the key: `i9y:<name>:<id>`. */
  name: string;
  lockTtlMs: number;
  /** Whether the lock of a process that is no longer alive is given to the next caller at once. */
  mayTakeOver: boolean;
  /** Fingerprint by which a different request under the same key is noticed; the request itself is not stored. */
  hashRequest?: (request: Request) => string;
}

export type Acquired<Outcome> =
  /** The caller has the lock, and must seal or release it. */
  | { kind: 'acquired'; lock: Lock }
  /** Another caller has the lock, in the process `holder` where that is known. */
  | { kind: 'locked'; holder: string | null }
  /** Done before, with this outcome. */
  | { kind: 'sealed'; outcome: Outcome }
  /** Done before, with another request under the same key. */
  | { kind: 'mismatch' };

/** Only a final outcome is remembered; after any other the next caller runs the handler again. */
export interface Handled<Outcome> {
  outcome: Outcome;
  isFinal: boolean;
}

export type Done<Outcome> =
  | { kind: 'executed'; outcome: Outcome }
  /** Done before, with this outcome. */
  | { kind: 'replayed'; outcome: Outcome }
  /** Another caller is doing it right now. */
  | { kind: 'in-flight' }
  /** Done before, with another request under the same key. */
  | { kind: 'mismatch' };

export interface HandlerOptions<Request> extends OperationOptions<Request> {
  /** How long a final outcome is remembered. */
  keepTtlMs: (request: Request) => number;
}

export interface Idempotent<Request, Outcome> {
  do(id: string, request: Request): Promise<Done<Outcome>>;
}

/** In this process, for all operations: no two tokens are the same. */
let calls = 0;

/**
 * The keys of one operation.
 *
 *   unlocked ──acquire──▶ locked ──seal──▶ sealed ──TTL──▶ unlocked
 *      ▲                    │
 *      └── release, TTL ────┘      (and takeover: locked, holder not alive ──▶ locked by another caller)
 */
export class IdempotentOperation<Outcome, Request = void> {
  /** Tokens of callers that the store did not answer, by key: it may have given them the lock nevertheless. */
  private readonly unanswered = new Map<string, string>();
  private readonly held: OwnLocks;

  constructor(
    private readonly store: IdempotencyStore,
    private readonly heartbeat: Heartbeat,
    private readonly options: OperationOptions<Request>,
    private readonly clock: Clock,
  ) {
    this.held = new OwnLocks(store, options.lockTtlMs, clock);
  }

  /**
   * Of all callers with the same id one gets the lock. Rejects when the store does not answer: nothing was done then.
   */
  async acquire(id: string, request: Request): Promise<Acquired<Outcome>> {
    const { name, lockTtlMs: ttlMs, mayTakeOver, hashRequest } = this.options;
    const key = `i9y:${name}:${id}`;
    const token = this.unanswered.get(key) ?? `${this.heartbeat.processId}/${++calls}`;
    this.unanswered.delete(key);
    const requestHash = hashRequest?.(request) ?? null;
    const askedAt = this.clock.now();
    let answer: LockAnswer;
    try {
      answer = await this.store.acquire({ key, token, ttlMs, requestHash, mayTakeOver });
    } catch (error) {
      // With another token the next try would wait for this one's lock to expire; of several tokens, the first may have
      // the lock.
      if (!this.unanswered.has(key)) this.unanswered.set(key, token);
      throw error;
    }
    if (answer.kind === 'acquired') {
      idempotencyCounted.inc({ operation: name, result: answer.takenOver ? 'takeover' : 'miss' });
      return { kind: 'acquired', lock: this.held.hold(key, token, askedAt) };
    }
    if (answer.kind === 'locked') {
      idempotencyCounted.inc({ operation: name, result: 'in-flight' });
      return answer;
    }
    const isSame = answer.requestHash === requestHash;
    idempotencyCounted.inc({ operation: name, result: isSame ? 'hit' : 'mismatch' });
    return isSame ? { kind: 'sealed', outcome: answer.outcome as Outcome } : { kind: 'mismatch' };
  }
}

/** Makes operations and handlers idempotent. Storage lives behind IdempotencyStore. */
@Injectable()
export class Idempotency implements OnApplicationBootstrap, OnApplicationShutdown {
  private isUsed = false;

  constructor(
    private readonly store: IdempotencyStore,
    private readonly heartbeat: Heartbeat,
    private readonly clock: Clock,
  ) {}

  /** A process without operations never has a lock, and has no say in where locks are. */
  async onApplicationBootstrap(): Promise<void> {
    if (!this.isUsed) return;
    this.heartbeat.beforeNotedEnd((process) => this.store.forget(process));
    await this.store.announce();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.isUsed) await this.store.withdraw();
  }

  /** For a path that locks and seals by itself. */
  operation<Outcome, Request = void>(options: OperationOptions<Request>): IdempotentOperation<Outcome, Request> {
    this.isUsed = true;
    return new IdempotentOperation(this.store, this.heartbeat, options, this.clock);
  }

  /**
   * A handler of which one of all callers with the same id runs; the others get its outcome or learn that it is under
   * way. Rejects when the store does not answer at the start (nothing was run then), or when the handler does. Once the
   * handler has run, its outcome is given, even if it could not be sealed.
   */
  make<Request, Outcome>(
    handler: (request: Request) => Promise<Handled<Outcome>>,
    options: HandlerOptions<Request>,
  ): Idempotent<Request, Outcome> {
    const operation = this.operation<Outcome, Request>(options);
    return {
      async do(id, request) {
        const acquired = await operation.acquire(id, request);
        if (acquired.kind === 'locked') return { kind: 'in-flight' };
        if (acquired.kind === 'mismatch') return acquired;
        if (acquired.kind === 'sealed') return { kind: 'replayed', outcome: acquired.outcome };
        const { lock } = acquired;
        try {
          const { outcome, isFinal } = await handler(request);
          if (isFinal) await lock.seal(outcome, options.keepTtlMs(request));
          return { kind: 'executed', outcome };
        } finally {
          await lock.release();
        }
      },
    };
  }
}
