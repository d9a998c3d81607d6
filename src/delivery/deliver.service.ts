import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Idempotency, type Handled, type Idempotent } from '../idempotency/idempotency.service.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import type { Settlement } from '../ledger/delivery.js';
import { Leases } from '../ledger/leases.service.js';
import { Ledger } from '../ledger/ledger.service.js';
import type { QueuedDelivery } from '../queue/chunk.js';
import { guaranteeOf } from '../subscriptions/delivery-guarantee.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import type { DeliveryOutcome } from './decide-outcome.js';
import { filteredCounted } from './delivery.counters.js';
import { keepMsOf } from './keep-outcome.js';
import { Sender, type Task } from './sender.service.js';
import { untilItWorks } from './until-it-works.js';

/** What one round made of a delivery. */
type Course =
  | { kind: 'settle'; outcome: DeliveryOutcome; isClaimed?: boolean }
  /** Somebody is sending it, or died doing so. */
  | { kind: 'in-flight' }
  /** It is no longer this message's: handed out again, cancelled, or claimed before. */
  | { kind: 'superseded' };

/** Beyond the time a call may take, before a delivery that somebody else seems to be sending is looked at again. */
const inFlightSlackMs = 6000;

/**
 * Hot path, second half, for one delivery. At least once: lock → send → seal → settle. At most once: claim → send →
 * settle. Taking and acknowledging is the worker's.
 */
@Injectable()
export class DeliverService {
  private readonly logger = new Logger(DeliverService.name);
  private readonly atLeastOnceCustomers: ReadonlySet<string>;
  private readonly sent: Idempotent<Task, DeliveryOutcome>;
  private readonly ended: Idempotent<DeliveryOutcome, DeliveryOutcome>;

  constructor(
    private readonly config: Config,
    private readonly heartbeat: Heartbeat,
    private readonly subscriptions: SubscriptionsService,
    private readonly ledger: Ledger,
    private readonly leases: Leases,
    private readonly sender: Sender,
    idempotency: Idempotency,
  ) {
    const { settings } = config;
    this.atLeastOnceCustomers = new Set(settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
    const lock = { operation: 'delivery', lockTtlMs: settings.TTL_LOCK_TIME_LIMIT_MS, mayTakeOver: true };
    this.sent = idempotency.make((task: Task) => this.sendLocked(task), {
      ...lock,
      keepTtlMs: ({ subscription }) => keepMsOf(subscription.ownerClientId, settings.TTL_IDEMPOTENCY_PER_CUSTOMER_SEC),
    });
    this.ended = idempotency.make(async (outcome: DeliveryOutcome) => ({ outcome, isFinal: false }), {
      ...lock,
      keepTtlMs: () => 0, // never sealed
    });
  }

  /**
   * One attempt. Repeats what fails on our side, but never the call to the receiver.
   * @param onSending called right before the call
   * @returns true when the ledger knows what came of it, false when `stopping` came first
   */
  async deliver(
    delivery: QueuedDelivery,
    body: Buffer,
    { onSending, stopping }: { onSending: () => void; stopping: AbortSignal },
  ): Promise<boolean> {
    const course = await this.follow(delivery, body, onSending, stopping);
    if (!course) return false;
    if (course.kind === 'superseded') return true;
    const isSettled = await untilItWorks(() => this.settle(delivery, course), stopping);
    if (course.kind === 'settle' && isGone(course.outcome)) await this.disable(delivery.subscriptionId);
    return isSettled ?? false;
  }

  /** @returns undefined when `stopping` came before anything was sent */
  private async follow(
    delivery: QueuedDelivery,
    body: Buffer,
    onSending: () => void,
    stopping: AbortSignal,
  ): Promise<Course | undefined> {
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    if (!subscription) return this.unlessSealed(this.ended, delivery, { kind: 'cancelled' }, stopping);
    const guarantee = guaranteeOf(subscription, this.atLeastOnceCustomers);
    const ending = this.endingOf(delivery, subscription);
    const task: Task = { delivery, subscription, guarantee, body, onSending, stopping };
    if (guarantee === 'at-most-once') return ending ? settled(ending) : this.atMostOnce(task);
    // It may have been sent before, and only the ledger does not know.
    if (ending) return this.unlessSealed(this.ended, delivery, ending, stopping);
    return this.unlessSealed(this.sent, delivery, task, stopping);
  }

  /** Why it is not sent any more; undefined: it is. */
  private endingOf(delivery: QueuedDelivery, subscription: Subscription): DeliveryOutcome | undefined {
    if (subscription.disabledAt) return { kind: 'failed', attempt: null };
    if (delivery.expiresAt === null || this.heartbeat.ledgerNow() < delivery.expiresAt) return undefined;
    this.logger.log({ event: 'delivery.expired', ...keyOf(delivery) });
    return { kind: 'expired', attempt: null };
  }

  /** Whoever meets the seal repairs the ledger instead of sending again, or of ending what was sent. */
  private async unlessSealed<Request>(
    idempotent: Idempotent<Request, DeliveryOutcome>,
    delivery: QueuedDelivery,
    request: Request,
    stopping: AbortSignal,
  ): Promise<Course | undefined> {
    const done = await untilItWorks(() => idempotent.do(idOf(delivery), request), stopping);
    if (done?.kind === 'replayed') {
      filteredCounted.inc();
      this.logger.log({ event: 'delivery.filtered', ...keyOf(delivery) });
    }
    if (done?.kind === 'executed' || done?.kind === 'replayed') return settled(done.outcome);
    return done && { kind: 'in-flight' };
  }

  private async sendLocked(task: Task): Promise<Handled<DeliveryOutcome>> {
    const outcome = (await this.sender.send(task))!; // nobody says no here
    return { outcome, isFinal: outcome.kind === 'delivered' || outcome.kind === 'failed' };
  }

  /** The ledger's claim is committed before the call, and is given once: after it, this call or none. */
  private async atMostOnce(task: Task): Promise<Course | undefined> {
    const { delivery, stopping } = task;
    let isMine: boolean | undefined;
    const outcome = await this.sender.send(task, async () => {
      isMine = await untilItWorks(() => this.ledger.claimSending(delivery), stopping);
      return isMine === true;
    });
    if (outcome) return { kind: 'settle', outcome, isClaimed: isMine };
    return isMine === false ? { kind: 'superseded' } : undefined;
  }

  private async settle(delivery: QueuedDelivery, course: Exclude<Course, { kind: 'superseded' }>): Promise<true> {
    if (course.kind === 'settle') await this.ledger.settle(settlementOf(delivery, course));
    else {
      // What they do not settle in good time comes back.
      const { NOTIFICATION_REQUESTS_TIMEOUT } = this.config.settings;
      await this.leases.shortenLease([delivery], NOTIFICATION_REQUESTS_TIMEOUT * 1000 + inFlightSlackMs);
    }
    return true;
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
}

const settled = (outcome: DeliveryOutcome): Course => ({ kind: 'settle', outcome });

/** 410: nothing more should ever be sent there (Standard Webhooks; RFC 9110 §15.5.11). */
const isGone = (outcome: DeliveryOutcome): boolean => outcome.kind === 'failed' && outcome.attempt?.status === 410;

const keyOf = ({ notificationId, subscriptionId, generation }: QueuedDelivery) => ({
  notificationId,
  subscriptionId,
  generation,
});

/** A replay is a new delivery to the receiver's mind and ours: the seal of the former one must not filter it. */
function idOf({ notificationId, subscriptionId, replays }: QueuedDelivery): string {
  return `${notificationId}:${subscriptionId}${replays === 0 ? '' : `:${replays}`}`;
}

function settlementOf(
  delivery: QueuedDelivery,
  { outcome, isClaimed }: Extract<Course, { kind: 'settle' }>,
): Settlement {
  const key = { ...keyOf(delivery), isClaimed };
  switch (outcome.kind) {
    case 'retry':
      return { ...key, attempt: outcome.attempt, state: 'waiting', delayMs: outcome.afterMs };
    case 'held':
      return { ...key, attempt: null, state: 'held', delayMs: outcome.afterMs };
    case 'cancelled':
      return { ...key, attempt: null, state: 'cancelled' };
    default:
      return { ...key, attempt: outcome.attempt, state: outcome.kind };
  }
}
