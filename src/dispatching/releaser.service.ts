import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { releasedCounted } from '../endpoints/endpoints.metrics.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { planRelease, type ReleasePlan } from '../endpoints/plan-release.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import {
  claimLooks,
  endLook,
  forgetHeldSubscription,
  leaveLooks,
  quietSeconds,
  type Look,
} from '../ledger/held-subscriptions.js';
import { freeHeldTooLong, type HeldTooLong } from '../ledger/free-held.js';
import { release } from '../ledger/release.js';
import { firstWindow, nextWindow } from '../ledger/release-window.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import { formatDuration, longestParkedSeconds } from '../retry-policy/retry-schedule.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { acceptedWithin } from './accepted-within.js';
import { inBatches } from './in-batches.js';

/** Subscriptions that are looked at together. */
const looksTogether = 64;
/**
 * While the window of a subscription grows, as long as it is small and few are looked at: an endpoint that is well again
 * shows its pace in half a second instead of two.
 */
const growing = { nextLookInMs: 50, belowWindow: 512, mostLooks: 8 };
/** Of deliveries that were held for too long; and the pause after them. */
const endedTogether = 1000;
const endingPauseMs = 500;
/** Until the next look, where nothing is held, and its row is kept only for a while; at first. */
const idleMs = 1000;

/**
 * Releases held deliveries, oldest first: as many as the endpoint has shown it can take, as the rate of the subscription allows, or
 * one as a probe of an endpoint in trouble. Any number of processes may run it: each subscription is looked at by one at a time.
 */
@Injectable()
export class Releaser {
  /** Nothing can have been held unseen for this long (see `forgetHeldSubscription`). */
  private readonly forgetAfterMs: number;

  constructor(
    private readonly postgres: Postgres,
    private readonly enqueuer: Enqueuer,
    private readonly subscriptions: SubscriptionsService,
    private readonly openEndpoints: OpenEndpoints,
    private readonly retryPolicies: RetryPolicies,
    private readonly heartbeat: Heartbeat,
    private readonly catalogue: Catalogue,
    private readonly clock: Clock,
    { settings }: Config,
  ) {
    this.forgetAfterMs = acceptedWithin(settings.DATABASE_TIMEOUT);
  }

  /** Makes all looks that are due. @returns how many deliveries were released */
  async releaseHeld(stopping: AbortSignal): Promise<number> {
    let total = 0;
    // Deliveries of an endpoint that was just closed would wait for the next look.
    if (this.openEndpoints.isAnyOpen) await this.openEndpoints.refresh();
    while (this.enqueuer.isAccepting && !stopping.aborted) {
      const looks = await claimLooks(this.postgres, looksTogether);
      // A subscription that was just resumed by another process would be taken for paused, and not be looked at again soon.
      if (looks[0]) await this.catalogue.reach(looks[0].catalogueVersion);
      const planned = looks.map((look) => ({ look, plan: this.plan(look) }));
      const parked = planned.filter(({ plan }) => plan.kind === 'parked');
      if (parked.length > 0)
        await this.leaveParked(
          parked.map(({ look }) => look),
          parked[0]!.plan.nextLookInMs,
        );
      const areFew = looks.length <= growing.mostLooks;
      const made = await Promise.all(planned.map(({ look, plan }) => this.look(look, plan, areFew)));
      total += made.reduce((sum, { released }) => sum + released, 0);
      if (looks.length === looksTogether) continue;
      if (!made.some(({ isGrowing }) => isGrowing)) break;
      await this.clock.pause(growing.nextLookInMs, stopping);
    }
    return total;
  }

  /**
   * Deliveries of parked endpoints that were held for as long as their retry policy would have gone on trying are no longer worth
   * sending: they are due, and a worker ends them as expired. A million may be, all at once: no more of them are due together than
   * workers end beside what else is due.
   */
  async freeHeldTooLong(stopping: AbortSignal): Promise<number> {
    let total = 0;
    let together = 0;
    const freeSome = async (tooLong: HeldTooLong, limit: number) => {
      const freed = await freeHeldTooLong(this.postgres, tooLong, limit);
      together += freed;
      if (together < endedTogether) return freed;
      together = 0;
      await this.clock.pause(endingPauseMs, stopping);
      return freed;
    };
    for (const { id: subscriptionId, callbackUrl, pausedAt } of await this.parkable()) {
      const endpoint = this.openEndpoints.of(callbackUrl);
      if (pausedAt || !endpoint) continue;
      const longestSeconds = longestParkedSeconds(this.retryPolicies.for(subscriptionId));
      const { address, openedAt, reason: why } = endpoint;
      const heldBefore = this.heartbeat.ledgerNow() - longestSeconds * 1000;
      // They may have been held for another reason, a pause for example, before it was opened.
      if (openedAt.getTime() > heldBefore) continue;
      const reason = `held for ${formatDuration(longestSeconds)}: its endpoint ${address} is parked since ${openedAt.toISOString()}: ${why}`;
      const tooLong = { subscriptionId, heldBefore, reason };
      total += await inBatches((limit) => freeSome(tooLong, limit), stopping);
    }
    return total;
  }

  /** Nearly always no endpoint is open, and there may be a hundred thousand subscriptions. */
  private async parkable(): Promise<Subscription[]> {
    return this.openEndpoints.isAnyOpen ? this.subscriptions.list() : [];
  }

  private plan(look: Look): ReleasePlan {
    const subscription = this.subscriptions.find(look.subscriptionId);
    const endpoint = subscription && this.openEndpoints.of(subscription.callbackUrl);
    return planRelease(look, subscription, endpoint, this.heartbeat.ledgerNow());
  }

  /** Many endpoints may be parked for long, with many subscriptions each: one statement for all of them. */
  private leaveParked(looks: readonly Look[], nextLookInMs: number): Promise<void> {
    return leaveLooks(
      this.postgres,
      looks.map(({ subscriptionId }) => subscriptionId),
      { window: firstWindow, nextLookInMs },
    );
  }

  private async look(look: Look, plan: ReleasePlan, areFew: boolean): Promise<MadeLook> {
    if (plan.kind === 'parked') return { released: 0, isGrowing: false };
    if (plan.kind === 'release') return this.releaseSome(look, plan, areFew);
    const { subscriptionId } = look;
    const isProbing = plan.kind === 'probe' && (await this.openEndpoints.claimProbe(plan.endpoint, subscriptionId));
    const released = isProbing ? await this.releaseOne(look) : 0;
    // When it is closed or resumed, it starts slowly.
    const { nextLookInMs } = plan;
    await endLook(this.postgres, { ...look, window: firstWindow, rateCredit: null, nextLookInMs });
    if (!isProbing) await forgetHeldSubscription(this.postgres, subscriptionId, this.forgetAfterMs);
    return { released, isGrowing: false };
  }

  private async releaseSome(look: Look, plan: ReleasePlan & { kind: 'release' }, areFew: boolean): Promise<MadeLook> {
    const { subscriptionId } = look;
    const { deliveries, outstanding } = await this.release(subscriptionId, plan.window, plan.limit);
    const count = deliveries.length;
    releasedCounted.inc({ as: 'flow' }, count);
    const window = plan.rateCredit === null ? nextWindow(look.window, look.outstanding, outstanding) : look.window;
    const isGrowing = areFew && count > 0 && window > look.window && window < growing.belowWindow;
    const isIdle = count + outstanding === 0 && plan.rateCredit === null;
    await endLook(this.postgres, {
      subscriptionId,
      window,
      outstanding: outstanding + count,
      isBacklog: count >= Math.min(plan.limit, plan.window - outstanding),
      rateCredit: plan.rateCredit === null ? null : plan.rateCredit - count,
      nextLookInMs: isIdle
        ? idlePauseMs(look, this.forgetAfterMs)
        : isGrowing
          ? growing.nextLookInMs
          : plan.nextLookInMs,
    });
    if (count === 0) await forgetHeldSubscription(this.postgres, subscriptionId, this.forgetAfterMs);
    return { released: count, isGrowing };
  }

  /** Whatever the window leaves: deliveries that were released before may hang at the endpoint that is probed. */
  private async releaseOne({ subscriptionId, window }: Look): Promise<number> {
    const { deliveries } = await this.release(subscriptionId, window * 2 + 1, 1);
    releasedCounted.inc({ as: 'probe' }, deliveries.length);
    return deliveries.length;
  }

  private async release(subscriptionId: string, window: number, limit: number) {
    const released = await release(this.postgres, { subscriptionId, window, limit }, this.enqueuer.process);
    await this.enqueuer.enqueueAll(released);
    return released;
  }
}

interface MadeLook {
  /** Deliveries. */
  released: number;
  /** It wants to be looked at again sooner than the others. */
  isGrowing: boolean;
}

/** As long as nothing was held, so that it doubles, up to when the row is forgotten: ten thousand of them cost little. */
function idlePauseMs({ secondsSinceHeld }: Look, forgetAfterMs: number): number {
  if (secondsSinceHeld < quietSeconds) return idleMs;
  const quietMs = secondsSinceHeld * 1000;
  return Math.max(idleMs, Math.min(quietMs, forgetAfterMs - quietMs));
}
