import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { SendingClaims } from '../ledger/claim-sending.service.js';
import type { Delivery, HeldReason } from '../ledger/delivery.js';
import { Holds } from '../ledger/hold.service.js';
import { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import { Settlements, type Outcome } from '../ledger/settle.service.js';
import type { ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { heldCounted } from './delivery.counters.js';
import { Turns } from './turns.service.js';
import { untilItWorks } from './until-it-works.js';

/** The writes of a worker to the ledger about one delivery, repeated until they work. */
@Injectable()
export class DeliveryRecords {
  private readonly logger = new Logger('Delivery');
  private readonly goneIsFinal: boolean;
  private readonly disabling = new Map<string, Promise<void>>();

  constructor(
    private readonly clock: Clock,
    private readonly settlements: Settlements,
    private readonly holds: Holds,
    private readonly claims: SendingClaims,
    private readonly inHand: DeliveriesInHand,
    private readonly subscriptions: SubscriptionsService,
    private readonly turns: Turns,
    { settings }: Config,
  ) {
    this.goneIsFinal = settings.FINAL_STATUSES.includes(410);
  }

  /** @param called the subscription as it was when its receiver was called; undefined: it was not called just now */
  async settle(
    delivery: Delivery,
    outcome: Outcome,
    from: 'queued' | 'sending',
    stopping: AbortSignal,
    called?: ListedSubscription,
  ): Promise<void> {
    const { notificationId, subscriptionId, generation } = delivery;
    const settlement = { notificationId, subscriptionId, generation, from, ...outcome };
    await untilItWorks(() => this.settlements.settle(settlement), this.clock, stopping);
    if (from === 'sending') this.claims.forget(delivery);
    const { state, attempt } = outcome;
    if (state !== 'waiting') this.turns.passOn(delivery);
    // 410: nothing more should ever be sent there (Standard Webhooks; RFC 9110 §15.5.11).
    if (attempt?.status === 410 && this.goneIsFinal && called) await this.disable(called);
  }

  /** It may not be sent now: a dispatcher releases it. */
  async hold(delivery: Delivery, reason: HeldReason, stopping: AbortSignal): Promise<void> {
    heldCounted.inc({ reason });
    await untilItWorks(() => this.holds.hold(delivery, reason), this.clock, stopping);
  }

  /**
   * A claim that was committed, and not heard of, is heard of when it is asked for again.
   * @param timeoutMs that its call may take
   * @returns false: it was settled, handed out again, cancelled, or claimed before
   */
  claim(delivery: Delivery, timeoutMs: number, stopping: AbortSignal): Promise<boolean> {
    return untilItWorks(() => this.claims.claim(delivery, timeoutMs), this.clock, stopping);
  }

  /**
   * How a delivery ends that is at most once by now, and that an earlier call may have reached; undefined: none has, as
   * far as is known.
   */
  async endOfEarlier(delivery: Delivery, stopping: AbortSignal): Promise<Outcome | undefined> {
    const state = await untilItWorks(() => this.claims.endOfEarlier(delivery), this.clock, stopping);
    return state && { state, attempt: null };
  }

  /** false: it is not to be sent any more, or not by this message. */
  isStillQueued(delivery: Delivery, stopping: AbortSignal): Promise<boolean> {
    return untilItWorks(() => this.inHand.isStillQueued(delivery), this.clock, stopping);
  }

  /** Of one that this process has claimed. false: it was cancelled since, or its time was over and it is `unknown`. */
  isStillClaimed(delivery: Delivery, stopping: AbortSignal): Promise<boolean> {
    return untilItWorks(() => this.claims.isStillClaimed(delivery), this.clock, stopping);
  }

  /** Another message of it is being sent; it is handed out again unless settled in `leaseMs`. */
  leaveToHolder(delivery: Delivery, holder: string | null, leaseMs: number, stopping: AbortSignal): Promise<void> {
    return untilItWorks(() => this.inHand.leaveToHolder(delivery, holder, leaseMs), this.clock, stopping);
  }

  /**
   * Not if it was changed while the call was open: it may have another address by now, or an operator has enabled it.
   * Once for all calls that are answered meanwhile: each change waits for those before it, of all subscriptions.
   */
  private disable({ id, version }: ListedSubscription): Promise<void> {
    const key = `${id} ${version}`;
    let disabling = this.disabling.get(key);
    if (!disabling) {
      disabling = this.tryToDisable(id, version).finally(() => this.disabling.delete(key));
      this.disabling.set(key, disabling);
    }
    return disabling;
  }

  private async tryToDisable(id: string, version: number): Promise<void> {
    try {
      await this.subscriptions.disable(id, version);
    } catch (error) {
      // Its next delivery will be answered 410 as well.
      this.logger.warn({ event: 'subscription.disable-failed', subscriptionId: id, error });
    }
  }
}
