import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { freeHeldTooLong, type HeldTooLong } from '../ledger/free-held.js';
import { longestAskedMs } from '../ledger/open-endpoints.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import { formatDuration, longestParkedSeconds } from '../retry-policy/retry-schedule.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { endingPace } from './in-batches.js';

/** Held deliveries that one statement looks at. */
const heldTogether = 1000;
/** So many of the same object end in a minute, each after the one before it. */
const mostTurns = 100;

/**
 * Deliveries of parked endpoints that were held for as long as their retry policy would have gone on trying are no
 * longer worth sending: they are due, and a worker ends them as expired. A million may be, all at once: no more of
 * them are due together than workers end beside what else is due.
 */
@Injectable()
export class HeldTooLongRule {
  constructor(
    private readonly postgres: Postgres,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly openEndpoints: OpenEndpoints,
    private readonly retryPolicies: RetryPolicies,
    private readonly ledgerClock: LedgerClock,
    private readonly catalogue: Catalogue,
    private readonly clock: Clock,
  ) {}

  /** @returns how many were freed */
  async free(stopping: AbortSignal): Promise<number> {
    let total = 0;
    let together = 0;
    const free = async (tooLong: HeldTooLong) => {
      const before = total;
      let after: string | undefined;
      do {
        const { freed, next } = await freeHeldTooLong(this.postgres, tooLong, after, heldTogether);
        after = next;
        total += freed;
        together += freed;
        if (together < endingPace.together) continue;
        together = 0;
        await this.clock.pause(endingPace.pauseMs, stopping);
      } while (after && !stopping.aborted);
      return total - before;
    };
    let mayHaveMore: ReadonlySet<string> | undefined;
    for (let turns = 1; turns <= mostTurns && mayHaveMore?.size !== 0 && !stopping.aborted; turns++) {
      if (mayHaveMore) await this.clock.pause(endingPace.pauseMs, stopping);
      if (this.openEndpoints.isAnyOpen) await this.openEndpoints.refresh();
      const passedOn = new Set<string>();
      for (const subscription of await this.parkable()) {
        if (mayHaveMore && !mayHaveMore.has(subscription.id)) continue;
        const tooLong = this.heldTooLong(subscription);
        // One that ends passes its turn on, to one that may have waited for as long.
        if (tooLong && (await free(tooLong)) > 0 && subscription.ordering === 'per-object')
          passedOn.add(subscription.id);
      }
      mayHaveMore = passedOn;
    }
    return total;
  }

  private heldTooLong(subscription: Subscription): HeldTooLong | undefined {
    const { id: subscriptionId, pausedAt } = subscription;
    const endpoint = this.openEndpoints.of(subscription);
    if (pausedAt || !endpoint) return undefined;
    const longestSeconds = longestParkedSeconds(this.retryPolicies.for(subscriptionId));
    const { address, openedAt, reason: why, askedUntil } = endpoint;
    const now = this.ledgerClock.now();
    const heldBefore = now - longestSeconds * 1000;
    // It asked for that time, and could not be tried before. One that asks again and again keeps them for a day more,
    // and no longer.
    if (askedUntil && askedUntil.getTime() > now && openedAt.getTime() > heldBefore - longestAskedMs) return undefined;
    // They may have been held for another reason, a pause for example, before it was opened.
    if (openedAt.getTime() > heldBefore) return undefined;
    const reason = `held for ${formatDuration(longestSeconds)}: its endpoint ${address} is parked since ${openedAt.toISOString()}: ${why}`;
    return { subscriptionId, heldBefore, reason };
  }

  /** Nearly always no endpoint is open, and there may be a hundred thousand subscriptions. */
  private async parkable(): Promise<readonly Subscription[]> {
    if (!this.openEndpoints.isAnyOpen) return [];
    await this.catalogue.refresh();
    return this.subscriptions.list();
  }
}
