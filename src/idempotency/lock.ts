import { Logger } from '@nestjs/common';
import type { Clock } from '../infra/clock.js';
import type { IdempotencyStore } from './idempotency-store.js';

/**
 * A lock is extended after seven tenths of its life, and where that failed again after each tenth more, as long as it
 * lives.
 */
const tenths = { betweenExtensions: 7, afterFailure: 1 };
const logger = new Logger('Idempotency');

const failures = {
  seal: { event: 'idempotency.seal-failed' },
  extend: { event: 'idempotency.extend-failed' },
  release: { event: 'idempotency.release-failed' },
};

/**
 * The locks that this process holds, with one timer for all: nearly all are over long before they have to be extended.
 */
export class OwnLocks {
  private readonly locks = new Set<Lock>();
  private passing: NodeJS.Timeout | undefined;

  constructor(
    readonly store: IdempotencyStore,
    readonly ttlMs: number,
    readonly clock: Clock,
  ) {}

  /** @param askedAt when the store was asked for it */
  hold(key: string, token: string, askedAt: number): Lock {
    const lock = new Lock(this, key, token, askedAt);
    this.locks.add(lock);
    this.passing ??= setInterval(() => this.passTenth(), this.ttlMs / 10);
    return lock;
  }

  forget(lock: Lock): void {
    this.locks.delete(lock);
    if (this.locks.size > 0) return;
    clearInterval(this.passing);
    this.passing = undefined;
  }

  private passTenth(): void {
    for (const lock of this.locks) void lock.passTenth();
  }
}

/**
 * The lock of a key that this process holds. It is extended until it is sealed or released, which is done once and
 * never rejects.
 */
export class Lock {
  private tenthsLeft = tenths.betweenExtensions;
  private isOver = false;

  constructor(
    private readonly held: OwnLocks,
    private readonly key: string,
    private readonly token: string,
    /** When the store was asked for it, or for its last extension: its answer may have come late. */
    private askedAt: number,
  ) {}

  /** False where this process, or the store, stood still for so long that another caller may have it by now. */
  get isHeld(): boolean {
    return this.held.clock.now() < this.askedAt + this.held.ttlMs;
  }

  /** Remembers the outcome: every later caller gets it for `keepMs`. */
  async seal(outcome: unknown, keepMs: number): Promise<void> {
    if (this.end()) await this.write('seal', (store) => store.seal(this.key, this.token, outcome, keepMs));
  }

  /** The next caller gets the lock. A key that has been sealed or released stays as it is. */
  async release(): Promise<void> {
    if (this.end()) await this.write('release', (store) => store.release(this.key, this.token));
  }

  async passTenth(): Promise<void> {
    if (--this.tenthsLeft > 0) return;
    this.tenthsLeft = tenths.betweenExtensions;
    const askedAt = this.held.clock.now();
    const isExtended = await this.write('extend', (store) => store.extend(this.key, this.token, this.held.ttlMs));
    if (isExtended) this.askedAt = askedAt;
    else this.tenthsLeft = tenths.afterFailure;
  }

  /** @returns false: it was sealed or released before */
  private end(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.held.forget(this);
    return true;
  }

  /** A write that fails is not repeated: the lock ends with its TTL, and the result of the work counts anyway. */
  private async write(
    verb: keyof typeof failures,
    write: (store: IdempotencyStore) => Promise<boolean>,
  ): Promise<boolean> {
    try {
      const isHeld = await write(this.held.store);
      // It had expired or was taken over, so the work may have been done a second time.
      if (!isHeld) logger.warn({ event: 'idempotency.lock-lost', key: this.key });
      return isHeld;
    } catch (error) {
      logger.warn({ ...failures[verb], key: this.key, error });
      return false;
    }
  }
}
