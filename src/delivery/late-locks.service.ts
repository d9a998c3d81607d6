import { Injectable, type BeforeApplicationShutdown } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Idempotency, type IdempotentOperation } from '../idempotency/idempotency.service.js';
import type { Lock } from '../idempotency/lock.js';
import { Clock } from '../infra/clock.js';
import type { Delivery } from '../ledger/delivery.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { handOverLeaseMs } from '../queue/hand-over.service.js';
import { deliveryKeys, keyIdOf } from './delivery-keys.js';
import type { SealedOutcome } from './sealed-outcome.js';

/** Nearly all deliveries are over sooner. */
const lockedAfterMs = 300;
const sweepMs = 100;
/**
 * From the acceptance of a delivery on; the rest of its first lease is for its late lock. A process that stood still
 * for longer finds it in its hand as before, while the rule `lease-ended` is about to give it to another one. Where it
 * has merely waited for long, the worker has a longer lease of it by now, but then a lock more costs little.
 */
const unlockedForMs = (handOverLeaseMs * 2) / 3;
const mayBeUnlocked = (queuedAt: number, clock: LedgerClock): boolean => clock.now() - queuedAt < unlockedForMs;

/** A delivery that is sent under the lease of its process alone. */
export interface Unlocked {
  /** False where this process stood still for so long that another one may send it by now. */
  readonly isHeld: boolean;
  /** Its outcome is known, and about to be written. Waits only where it has got its lock meanwhile. */
  seal(outcome: SealedOutcome, keepMs: number): Promise<void> | undefined;
  /** The ledger has its outcome, or another process will send it. */
  end(): Promise<void> | undefined;
}

/**
 * Takes locks for deliveries that are sent under the lease of their process (docs/decisions/0062) and last too long: a
 * call that stays open, or an outcome that the ledger does not take. Then it is with them as with any other delivery:
 * should this process die or stand still, the next one finds a lock, or the outcome under a seal.
 */
@Injectable()
export class LateLocks implements BeforeApplicationShutdown {
  private readonly keys: IdempotentOperation<SealedOutcome>;
  /** The oldest first. */
  private readonly unlocked = new Set<UnderLease>();
  private readonly sweeping: NodeJS.Timeout;

  constructor(
    idempotency: Idempotency,
    private readonly heartbeat: Heartbeat,
    private readonly clock: Clock,
    private readonly ledgerClock: LedgerClock,
    { settings }: Config,
  ) {
    this.keys = deliveryKeys(idempotency, settings);
    this.sweeping = setInterval(() => void this.sweep(), sweepMs).unref();
  }

  /** When the worker has finished: until then a call may take long, and the ledger may be away. */
  beforeApplicationShutdown(): void {
    clearInterval(this.sweeping);
  }

  /**
   * Whether the lock of a delivery may wait: meanwhile no other process takes this one for dead, and its lease does not
   * end, after which others would send it.
   * @param queuedAt milliseconds since 1970, by the ledger's clock: when it was accepted
   */
  mayWait(queuedAt: number): boolean {
    return this.heartbeat.isSteady && mayBeUnlocked(queuedAt, this.ledgerClock);
  }

  /** @param queuedAt as above */
  begin(delivery: Delivery, queuedAt: number): Unlocked {
    const begun = new UnderLease(delivery, this.clock.now(), queuedAt, this.ledgerClock, this.unlocked);
    this.unlocked.add(begun);
    return begun;
  }

  /** Locks what has taken too long. Where the store does not answer, the next sweep tries again. */
  async sweep(): Promise<void> {
    const latest = this.clock.now() - lockedAfterMs;
    const late: UnderLease[] = [];
    for (const each of this.unlocked) {
      if (each.begunAt > latest) break;
      late.push(each);
    }
    await Promise.all(late.map((each) => each.lockBy(this.keys)));
  }
}

class UnderLease implements Unlocked {
  private acquiring: Promise<void> | undefined;
  private lock: Lock | undefined;
  private sealing: [outcome: SealedOutcome, keepMs: number] | undefined;
  private hasEnded = false;
  /** The store was asked and did not answer: it may have given the lock nevertheless. */
  private isUnanswered = false;

  constructor(
    private readonly delivery: Delivery,
    readonly begunAt: number,
    private readonly queuedAt: number,
    private readonly ledgerClock: LedgerClock,
    private readonly unlocked: Set<UnderLease>,
  ) {}

  get isHeld(): boolean {
    return this.lock ? this.lock.isHeld : mayBeUnlocked(this.queuedAt, this.ledgerClock);
  }

  seal(...sealing: [SealedOutcome, number]): Promise<void> | undefined {
    this.sealing = sealing;
    return this.lock?.seal(...sealing);
  }

  end(): Promise<void> | undefined {
    this.hasEnded = true;
    // Otherwise nobody would release the lock that the store may have given, or is about to give.
    if (!this.acquiring && !this.isUnanswered) this.unlocked.delete(this);
    return this.lock?.release();
  }

  lockBy(keys: IdempotentOperation<SealedOutcome>): Promise<void> {
    this.acquiring ??= this.acquire(keys).finally(() => (this.acquiring = undefined));
    return this.acquiring;
  }

  private async acquire(keys: IdempotentOperation<SealedOutcome>): Promise<void> {
    // Nothing waits for it: without a store, the lease holds as long as this process does.
    const acquired = await keys.acquire(keyIdOf(this.delivery)).catch(() => undefined);
    this.isUnanswered = !acquired;
    if (!acquired) return;
    this.unlocked.delete(this);
    if (acquired.kind !== 'acquired') return; // another message was faster: which of the two counts, their generations say
    this.lock = acquired.lock;
    if (this.sealing) await this.lock.seal(...this.sealing);
    if (this.hasEnded) await this.lock.release();
  }
}
