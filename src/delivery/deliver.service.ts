import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Idempotency, type Acquired, type IdempotentOperation } from '../idempotency/idempotency.service.js';
import { Clock } from '../infra/clock.js';
import { SendingClaims } from '../ledger/claim-sending.service.js';
import type { Delivery } from '../ledger/delivery.js';
import { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import { Settlements, type Outcome } from '../ledger/settle.service.js';
import { guaranteeOf } from '../subscriptions/delivery-guarantee.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import type { Loaded } from './chunk-loader.service.js';
import { Decider } from './decider.service.js';
import { filteredCounted } from './delivery.counters.js';
import { EndpointWindows, verdictOn, type EndpointWindow } from './endpoint-window.js';
import { sealMsOf } from './seal-lifetime.js';
import { fromSeal, toSeal, type SealedOutcome } from './sealed-outcome.js';
import { Sender } from './sender.service.js';
import { Turns } from './turns.service.js';
import { untilItWorks } from './until-it-works.js';

/** A message that finds its delivery locked leaves it alone for the time limit of a call, and this much longer. */
const lockedSlackMs = 6000;

/** A delivery that is to be sent. */
interface Task {
  delivery: Loaded;
  subscription: Subscription;
  /** Of the endpoint that the subscription's callback URL leads to. */
  window: EndpointWindow;
  stopping: AbortSignal;
}

/**
 * The second half of the hot path (docs/glossary.md), for one delivery; the worker takes it from the queue. Locking, claiming
 * and settling are repeated until they work. The call to the receiver never is.
 */
@Injectable()
export class DeliverService {
  private readonly logger = new Logger(DeliverService.name);
  private readonly settings: Config['settings'];
  private readonly atLeastOnceCustomers: ReadonlySet<string>;
  private readonly windows: EndpointWindows;
  private readonly keys: IdempotentOperation<SealedOutcome>;

  constructor(
    { settings }: Config,
    private readonly clock: Clock,
    private readonly subscriptions: SubscriptionsService,
    idempotency: Idempotency,
    private readonly claims: SendingClaims,
    private readonly sender: Sender,
    private readonly decider: Decider,
    private readonly settlements: Settlements,
    private readonly inHand: DeliveriesInHand,
    private readonly turns: Turns,
  ) {
    this.settings = settings;
    this.atLeastOnceCustomers = new Set(settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
    this.windows = new EndpointWindows(settings.MAX_IN_FLIGHT_PER_ENDPOINT, () => performance.now());
    const lockTtlMs = settings.TTL_LOCK_TIME_LIMIT_MS;
    this.keys = idempotency.operation({ name: 'delivery', lockTtlMs, mayTakeOver: true });
  }

  /**
   * Resolves when the ledger has the outcome of the delivery, or has left it to the worker that is sending it.
   * @throws {Stopping} when the process stops before that
   * @throws an error of a value that cannot be stored
   */
  async deliver(delivery: Loaded, stopping: AbortSignal): Promise<void> {
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    if (!subscription) return this.end(delivery, { state: 'cancelled', attempt: null }, stopping);
    const ending = this.decider.endingOf(delivery, subscription);
    if (ending) return this.end(delivery, ending, stopping);
    const task = { delivery, subscription, window: this.windows.of(subscription.callbackUrl), stopping };
    const guarantee = guaranteeOf(subscription, this.atLeastOnceCustomers);
    return guarantee === 'at-most-once' ? this.atMostOnce(task) : this.atLeastOnce(task);
  }

  /** lock → send → decide → seal → settle. A later message that finds the seal is not sent. */
  private async atLeastOnce(task: Task): Promise<void> {
    const { delivery, subscription, window, stopping } = task;
    const key = await this.lock(delivery, stopping);
    if (key.kind !== 'acquired') return this.yieldTo(key, delivery, stopping);
    try {
      let outcome = await this.enter(task);
      if (!outcome) {
        const response = await this.sender.send(delivery, subscription);
        window.leave(verdictOn(response), response.durationMs);
        outcome = await this.decider.decide(delivery, 'at-least-once', response);
      }
      await (isSealed(outcome) ? key.lock.seal(toSeal(outcome), this.sealMs(subscription)) : key.lock.release());
      await this.settle(delivery, outcome, 'queued', stopping);
    } finally {
      await key.lock.release(); // does nothing, unless an error came before: the lock must not be extended for ever
    }
  }

  /** claim → send → decide → settle. The claim is committed before the call, and given once: no other call will follow. */
  private async atMostOnce(task: Task): Promise<void> {
    const { delivery, subscription, window, stopping } = task;
    const held = await this.enter(task);
    if (held) return this.settle(delivery, held, 'queued', stopping);
    if (!(await this.claim(task))) return; // it was settled, handed out again, cancelled, or claimed before
    const response = await this.sender.send(delivery, subscription);
    window.leave(verdictOn(response), response.durationMs);
    const outcome = await this.decider.decide(delivery, 'at-most-once', response);
    await this.settle(delivery, outcome, 'sending', stopping);
  }

  /** Ends the delivery without a call, unless its key is sealed: then it was sent before, and that outcome counts. */
  private async end(delivery: Delivery, ending: Outcome, stopping: AbortSignal): Promise<void> {
    const key = await this.lock(delivery, stopping);
    if (key.kind !== 'acquired') return this.yieldTo(key, delivery, stopping);
    await key.lock.release();
    if (ending.state === 'expired') this.logger.log({ event: 'delivery.expired', ...keyOf(delivery) });
    await this.settle(delivery, ending, 'queued', stopping);
  }

  private lock(delivery: Delivery, stopping: AbortSignal): Promise<Acquired<SealedOutcome>> {
    return untilItWorks(() => this.keys.acquire(idOf(delivery)), this.clock, stopping);
  }

  /** @returns `held` where the endpoint has no room; undefined: the delivery has room for one call */
  private async enter({ window, stopping }: Task): Promise<Outcome | undefined> {
    const held = await window.enter();
    if (held || !stopping.aborted) return held;
    window.leave('none', 0);
    throw stopping.reason;
  }

  private async claim({ delivery, window, stopping }: Task): Promise<boolean> {
    let isClaimed = false;
    try {
      isClaimed = await untilItWorks(() => this.claims.claim(delivery), this.clock, stopping);
    } finally {
      if (!isClaimed) window.leave('none', 0);
    }
    return isClaimed;
  }

  /** Sealed: the ledger may have missed that outcome, so it is written. Locked: the holder will settle it within a short lease. */
  private async yieldTo(
    key: Exclude<Acquired<SealedOutcome>, { kind: 'acquired' }>,
    delivery: Delivery,
    stopping: AbortSignal,
  ): Promise<void> {
    if (key.kind === 'sealed') {
      filteredCounted.inc();
      this.logger.log({ event: 'delivery.filtered', ...keyOf(delivery) });
      return this.settle(delivery, fromSeal(key.outcome), 'queued', stopping);
    }
    const leaseMs = this.settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000 + lockedSlackMs;
    await untilItWorks(() => this.inHand.leaveToHolder(delivery, leaseMs), this.clock, stopping);
  }

  private async settle(
    delivery: Delivery,
    outcome: Outcome,
    from: 'queued' | 'sending',
    stopping: AbortSignal,
  ): Promise<void> {
    const settlement = { ...keyOf(delivery), from, ...outcome };
    await untilItWorks(() => this.settlements.settle(settlement), this.clock, stopping);
    if (isEnd(outcome) && this.subscriptions.find(delivery.subscriptionId)?.ordering === 'per-object')
      this.turns.passOn(delivery);
    // 410: nothing more should ever be sent there (Standard Webhooks; RFC 9110 §15.5.11).
    if (outcome.attempt?.status === 410) await this.disable(delivery.subscriptionId);
  }

  private async disable(subscriptionId: string): Promise<void> {
    try {
      await this.subscriptions.disable(subscriptionId);
      this.logger.warn({ event: 'subscription.disabled', subscriptionId });
    } catch (error) {
      // Its next delivery will be answered 410 as well.
      this.logger.warn({ event: 'subscription.disable-failed', subscriptionId, error });
    }
  }

  private sealMs({ ownerClientId }: Subscription): number {
    return sealMsOf(ownerClientId, this.settings.TTL_IDEMPOTENCY_PER_CUSTOMER_SEC);
  }
}

/** After these no worker may call the receiver again. An ending without a call is not sealed: an operator may retry it. */
const isSealed = (outcome: Outcome): outcome is Outcome & { state: 'delivered' | 'failed' } =>
  outcome.state === 'delivered' || outcome.state === 'failed';

const isEnd = ({ state }: Outcome): boolean => state !== 'waiting' && state !== 'held';

const keyOf = ({ notificationId, subscriptionId, generation }: Delivery) => ({
  notificationId,
  subscriptionId,
  generation,
});

/** A replay is sent although the delivery has ended: the seal of its first series of attempts must not filter it. */
function idOf({ notificationId, subscriptionId, replays }: Delivery): string {
  return `${notificationId}:${subscriptionId}${replays === 0 ? '' : `:${replays}`}`;
}
