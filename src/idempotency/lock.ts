import { Logger } from '@nestjs/common';
import type { IdempotencyStore } from './idempotency-store.js';

/** A lock is extended after seven tenths of its life, and where that failed again after each tenth more, as long as it lives. */
const tenths = { betweenExtensions: 7, afterFailure: 1 };
const logger = new Logger('Idempotency');

/**
 * The lock of a key that this process holds. It is extended until it is sealed or released, which is done once and never rejects.
 */
export class Lock {
  private readonly extending: NodeJS.Timeout;
  private tenthsLeft = tenths.betweenExtensions;
  private isOver = false;

  constructor(
    private readonly store: IdempotencyStore,
    private readonly key: string,
    private readonly token: string,
    private readonly ttlMs: number,
  ) {
    this.extending = setInterval(() => void this.passTenth(), ttlMs / 10);
  }

  /** Remembers the outcome: every later caller gets it for `keepMs`. */
  seal(outcome: unknown, keepMs: number): Promise<void> {
    return this.end('seal', () => this.store.seal(this.key, this.token, outcome, keepMs));
  }

  /** The next caller gets the lock. A key that has been sealed or released stays as it is. */
  release(): Promise<void> {
    return this.end('release', () => this.store.release(this.key, this.token));
  }

  private async end(verb: string, write: () => Promise<boolean>): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    clearInterval(this.extending);
    await this.write(verb, write);
  }

  private async passTenth(): Promise<void> {
    if (--this.tenthsLeft > 0) return;
    this.tenthsLeft = tenths.betweenExtensions;
    const isExtended = await this.write('extend', () => this.store.extend(this.key, this.token, this.ttlMs));
    if (!isExtended) this.tenthsLeft = tenths.afterFailure;
  }

  /** A write that fails is not repeated: the lock ends with its TTL, and the result of the work counts anyway. */
  private async write(verb: string, write: () => Promise<boolean>): Promise<boolean> {
    try {
      const isHeld = await write();
      // It had expired or was taken over, so the work may have been done a second time.
      if (!isHeld) logger.warn({ event: 'idempotency.lock-lost', key: this.key });
      return isHeld;
    } catch (error) {
      logger.warn({ event: `idempotency.${verb}-failed`, key: this.key, error });
      return false;
    }
  }
}
