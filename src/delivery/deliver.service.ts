import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Admission } from '../endpoints/admission.service.js';
import type { Place } from '../endpoints/room.js';
import { Idempotency, type Acquired, type IdempotentOperation } from '../idempotency/idempotency.service.js';
import { Clock } from '../infra/clock.js';
import type { Delivery, HandedOut } from '../ledger/delivery.js';
import { bodyErased } from '../ledger/cancel-erased.js';
import type { Outcome } from '../ledger/settle.service.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import { guaranteeOf } from '../subscriptions/delivery-guarantee.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import { SubscriptionDirectory, type ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { freshMs, type Loaded } from './chunk-loader.service.js';
import { Decider } from './decider.service.js';
import { filteredCounted } from './delivery.counters.js';
import { deliveryKeys, keyIdOf } from './delivery-keys.js';
import { DeliveryRecords } from './delivery-records.service.js';
import { Entry } from './entry.js';
import type { BorrowedText, LargeBodies } from './large-bodies.js';
import { LateLocks } from './late-locks.service.js';
import { LocksToRelease } from './locks-to-release.js';
import { sealMsOf } from './seal-lifetime.js';
import { fromSeal, toSeal, type SealedOutcome } from './sealed-outcome.js';
import { Sender } from './sender.service.js';
import { StillWanted, type Task } from './still-wanted.js';
import { untilItWorks } from './until-it-works.js';
import { verdictOn } from './verdict-on.js';

/** A message that finds its delivery locked leaves it alone for the time limit of a call, and this much longer. */
const lockedSlackMs = 6000;

/** The data that the deliveries of a chunk have in common. */
export interface Surroundings {
  bodies: LargeBodies;
  /** One of them has its place. */
  onBegun: () => void;
  stopping: AbortSignal;
  /**
   * They have just been accepted, by this process or for it by a sibling, and the ledger says that they are in its
   * hand: nobody else sends them.
   */
  isHandedOver: boolean;
  /** Milliseconds since 1970, by the ledger's clock: when it handed them out. */
  queuedAt: number;
  /** Their message may have been taken before. */
  isRedelivered: boolean;
  /** When they were known to be still queued. */
  since: number;
}

/**
 * The second half of the hot path (docs/glossary.md), for one delivery; the worker takes it from the queue. Locking,
 * claiming and settling are repeated until they work. The call to the receiver never is.
 */
@Injectable()
export class DeliverService {
  private readonly logger = new Logger(DeliverService.name);
  private readonly settings: Config['settings'];
  private readonly atLeastOnceCustomers: ReadonlySet<string>;
  private readonly keys: IdempotentOperation<SealedOutcome>;
  private readonly entry: Entry;
  private readonly stillWanted: StillWanted;
  private readonly toRelease = new LocksToRelease();

  constructor(
    { settings }: Config,
    private readonly clock: Clock,
    private readonly subscriptions: SubscriptionDirectory,
    idempotency: Idempotency,
    private readonly admission: Admission,
    private readonly sender: Sender,
    private readonly decider: Decider,
    private readonly records: DeliveryRecords,
    private readonly lateLocks: LateLocks,
  ) {
    this.settings = settings;
    this.atLeastOnceCustomers = new Set(settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
    this.entry = new Entry(subscriptions, decider, admission);
    this.stillWanted = new StillWanted(clock, subscriptions, decider, admission, records);
    this.keys = deliveryKeys(idempotency, settings);
  }

  /**
   * end, hold, or place → send as its guarantee says. Resolves when the ledger has the outcome of the delivery, holds
   * it, has left it to the worker that is sending it, or says that it is not to be sent any more.
   * @throws {Stopping} when the process stops before that
   * @throws an error of a value that cannot be stored
   */
  async deliver(delivery: HandedOut, surroundings: Surroundings): Promise<void> {
    const { bodies, onBegun, stopping, isHandedOver, queuedAt, isRedelivered, since } = surroundings;
    const fate = await this.entry.admit(delivery, isHandedOver);
    if (fate.kind === 'ends') return this.end(delivery, fate.outcome, stopping);
    if (fate.kind === 'held') {
      stopping.throwIfAborted();
      return this.records.hold(delivery, fate.reason, stopping);
    }
    // Not a function of its own: each delivery would pay for one more promise.
    const { subscription, place } = fate;
    const admittedAt = this.clock.now();
    let borrowed: BorrowedText | undefined;
    let isStale = false;
    try {
      stopping.throwIfAborted();
      onBegun();
      if (delivery.body === null) {
        const { room } = place;
        borrowed = await untilItWorks(
          () => bodies.borrow(delivery, { origin: room.origin.address, isProven: room.isProven }, stopping),
          this.clock,
          stopping,
        );
        stopping.throwIfAborted();
      }
      const body = delivery.body ?? borrowed?.text;
      if (!body) return await this.records.settle(delivery, erasedMeanwhile, 'queued', stopping);
      const hasWaited = this.clock.now() - since > freshMs;
      if (hasWaited && !(await this.records.isStillQueued(delivery, stopping))) return;
      const loaded = withBody(delivery, body);
      const task: Task = { delivery: loaded, subscription, place, stopping, since: admittedAt, lock: undefined };
      if (this.stillWanted.hasChanged(task)) isStale = true;
      else if (guaranteeOf(subscription, this.atLeastOnceCustomers) === 'at-most-once')
        await (isRedelivered || delivery.generation > 1 ? this.atMostOnceAgain(task) : this.atMostOnce(task));
      else if (isHandedOver && this.lateLocks.mayWait(queuedAt)) await this.underLease(task, queuedAt);
      else isStale = (await this.atLeastOnce(task)) === 'stale';
    } finally {
      borrowed?.giveBack();
      this.admission.giveBack(place);
    }
    // From the beginning: it is asked for again.
    if (isStale) await this.deliver(delivery, { ...surroundings, onBegun: () => {}, since: -Infinity });
  }

  /**
   * lock → send → leave → decide → seal → settle. A later message that finds the seal is not sent. While locks move to
   * another store (docs/decisions/0022), or a server is slow, locking takes seconds; meanwhile an operator may have
   * cancelled the delivery or changed its subscription. Where neither is so, it keeps lock and place: at the end of the
   * line of its endpoint again, it would be sent only when all before it have had their slow locks.
   */
  private async atLeastOnce(task: Task): Promise<'stale' | void> {
    const { delivery, subscription, place, stopping } = task;
    const key = await this.lock(delivery, stopping);
    if (key.kind !== 'acquired') return await this.yieldTo(key, delivery, stopping, place);
    task.lock = key.lock;
    let onReleased: (() => void) | undefined;
    try {
      stopping.throwIfAborted();
      if (this.clock.now() - task.since > freshMs) {
        if (!(await this.records.isStillQueued(delivery, stopping))) return;
        if (!this.stillWanted.isAsBefore(task)) return 'stale';
      }
      const outcome = await this.call(task, 'at-least-once');
      if (isSealed(outcome)) await key.lock.seal(toSeal(outcome), this.sealMs(subscription));
      if (outcome.state === 'waiting') onReleased = this.toRelease.add(delivery);
      await this.records.settle(delivery, outcome, 'queued', stopping, subscription);
    } finally {
      // Not before the ledger has the outcome: another message of it would find it queued, and send it. Of a sealed one
      // it does nothing.
      await key.lock.release();
      onReleased?.();
    }
  }

  /**
   * send → leave → decide → settle. The ledger says that it is in the hand of this process, under a lease that lasts,
   * and no other one takes this process for dead yet: nobody else may send it. So it gets a lock, and a seal, only if
   * it takes long (docs/decisions/0062).
   */
  private async underLease(task: Task, queuedAt: number): Promise<void> {
    const { delivery, subscription, stopping } = task;
    stopping.throwIfAborted();
    const unlocked = this.lateLocks.begin(delivery, queuedAt);
    task.lock = unlocked;
    let onReleased: (() => void) | undefined;
    try {
      const outcome = await this.call(task, 'at-least-once');
      if (isSealed(outcome)) await unlocked.seal(toSeal(outcome), this.sealMs(subscription));
      if (outcome.state === 'waiting') onReleased = this.toRelease.add(delivery);
      await this.records.settle(delivery, outcome, 'queued', stopping, subscription);
    } finally {
      await unlocked.end();
      onReleased?.();
    }
  }

  /**
   * claim → send → leave → decide → settle. The claim is committed before the call, and given once: no other call will
   * follow. A process that stood still after its claim may call when the delivery was given up as `unknown`: late is
   * better than never, but not where the next delivery about the same object may have been sent.
   */
  private async atMostOnce(task: Task): Promise<void> {
    const { delivery, subscription, stopping, since } = task;
    const timeoutMs = callTimeoutMs(subscription, this.settings);
    if (!(await this.records.claim(delivery, timeoutMs, stopping))) return;
    if (this.clock.now() - since > freshMs) {
      // It has not been sent: judged anew, it is held, ends, or goes to another address.
      if (!this.stillWanted.isAsBefore(task)) return this.records.settle(delivery, goesBack, 'sending', stopping);
      const mayBeOvertaken = subscription.ordering === 'per-object';
      if (mayBeOvertaken && !(await this.records.isStillClaimed(delivery, stopping))) return;
    }
    const outcome = await this.call(task, 'at-most-once');
    await this.records.settle(delivery, outcome, 'sending', stopping, subscription);
  }

  /**
   * It was handed out before, and its subscription may have been at least once then: a call that may have arrived is
   * not repeated. Its key knows what the ledger has missed, and keeps out a worker that has not heard of the change;
   * the ledger knows the calls that were to be repeated.
   */
  private async atMostOnceAgain(task: Task): Promise<void> {
    const { delivery, stopping, place } = task;
    const key = await this.lock(delivery, stopping);
    if (key.kind !== 'acquired') return this.yieldTo(key, delivery, stopping, place);
    const onReleased = this.toRelease.add(delivery);
    try {
      const ending = await this.records.endOfEarlier(delivery, stopping);
      await (ending ? this.records.settle(delivery, ending, 'queued', stopping) : this.atMostOnce(task));
    } finally {
      await key.lock.release();
      onReleased();
    }
  }

  /** send → leave → decide. */
  private async call(task: Task, guarantee: DeliveryGuarantee): Promise<Outcome> {
    const { delivery, subscription, place } = task;
    const response = await this.sender.send(
      delivery,
      subscription,
      guarantee,
      this.stillWanted.callerOf(task, guarantee),
    );
    this.admission.leave(place, verdictOn(response), response.durationMs, delivery);
    return this.decider.decide(delivery, guarantee, response, () => this.stillWanted.hasMoved(subscription));
  }

  /** Ends the delivery without a call, unless its key is sealed: then it was sent before, and that outcome counts. */
  private async end(delivery: Delivery, ending: Outcome, stopping: AbortSignal): Promise<void> {
    const key = await this.lock(delivery, stopping);
    if (key.kind !== 'acquired') return this.yieldTo(key, delivery, stopping);
    await key.lock.release();
    await this.records.settle(delivery, ending, 'queued', stopping);
  }

  /**
   * A retry may be here before the attempt that it follows has released its lock. That is a moment; left to its holder,
   * which is done with it, it would wait for a whole lease.
   */
  private async lock(delivery: Delivery, stopping: AbortSignal): Promise<Acquired<SealedOutcome>> {
    await this.toRelease.beforeSending(delivery);
    return untilItWorks(() => this.keys.acquire(keyIdOf(delivery)), this.clock, stopping);
  }

  /**
   * Sealed: the ledger may have missed that outcome, so it is written. Locked: the holder will settle it within a short
   * lease, or die, which frees it at once.
   */
  private async yieldTo(
    key: Exclude<Acquired<SealedOutcome>, { kind: 'acquired' }>,
    delivery: Delivery,
    stopping: AbortSignal,
    place?: Place,
  ): Promise<void> {
    if (key.kind === 'sealed') {
      const outcome = fromSeal(key.outcome);
      if (place && outcome.state === 'delivered' && outcome.attempt)
        this.admission.arrivedBefore(place, outcome.attempt.startedAt);
      filteredCounted.inc();
      const { notificationId, subscriptionId, generation } = delivery;
      this.logger.log({ event: 'delivery.filtered', notificationId, subscriptionId, generation });
      return this.records.settle(delivery, outcome, 'queued', stopping);
    }
    // The subscription may be gone by now, or have another time than when the holder began: a lease that ends too early
    // finds the delivery locked once more.
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    const leaseMs = callTimeoutMs(subscription ?? { timeoutSeconds: null }, this.settings) + lockedSlackMs;
    await this.records.leaveToHolder(delivery, key.kind === 'locked' ? key.holder : null, leaseMs, stopping);
  }

  private sealMs({ ownerClientId }: ListedSubscription): number {
    return sealMsOf(ownerClientId, this.settings.TTL_IDEMPOTENCY_PER_CUSTOMER_SEC);
  }
}

/** Nearly all come with it, and a copy of one would take longer than all that is decided about it here. */
const withBody = (delivery: HandedOut, body: Buffer): Loaded =>
  delivery.body === null ? { ...delivery, body } : (delivery as Loaded);

/** Or past its retention: then there is no row to settle. */
const erasedMeanwhile: Outcome = { state: 'cancelled', attempt: null, reason: bodyErased };

const goesBack: Outcome = { state: 'waiting', attempt: null, delayMs: 0 };

/**
 * After these no worker may call the receiver again. An ending without a call is not sealed: an operator may retry it.
 */
const isSealed = (outcome: Outcome): outcome is Outcome & { state: 'delivered' | 'failed' } =>
  outcome.state === 'delivered' || outcome.state === 'failed';
