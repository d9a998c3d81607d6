import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import type { Delivery } from '../ledger/delivery.js';
import { subscriptionDisabled } from '../ledger/end-of-subscription.js';
import { timeOfId } from '../ledger/partitions.js';
import type { Outcome } from '../ledger/settle.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { decideOutcome, hasArrived } from './decide-outcome.js';
import type { WebhookResponse } from './webhook-client.js';

/** Gathers the circumstances of an attempt for the pure rules of decide-outcome.ts, and reports what they decide. */
@Injectable()
export class Decider {
  private readonly finalStatuses: ReadonlySet<number>;

  constructor(
    private readonly catalogue: Catalogue,
    private readonly retryPolicies: RetryPolicies,
    private readonly ledgerClock: LedgerClock,
    private readonly reporter: AttemptReporter,
    { settings }: Config,
  ) {
    this.finalStatuses = new Set(settings.FINAL_STATUSES);
  }

  /** The outcome of a delivery that must not be sent any more; undefined: it may be sent. */
  endingOf({ expiresAt }: Delivery, subscription: Subscription): Outcome | undefined {
    if (subscription.disabledAt) return { state: 'failed', attempt: null, reason: subscriptionDisabled };
    const isExpired = expiresAt !== null && this.ledgerClock.now() >= expiresAt;
    return isExpired ? { state: 'expired', attempt: null } : undefined;
  }

  /** @param hasMoved its subscription, as far as this process knows by then, has another callback since the call */
  async decide(
    delivery: Delivery,
    guarantee: DeliveryGuarantee,
    response: WebhookResponse,
    hasMoved: () => boolean,
  ): Promise<Outcome> {
    const startedAt = Math.round(this.ledgerClock.now() - response.durationMs);
    // First of all: a process that abandons calls has seconds left. At most once, its attempt says it.
    if (response.kind === 'abandoned' && response.wasSent && guarantee === 'at-least-once')
      this.reporter.abandoned(delivery, startedAt, response);
    // A changed policy or callback applies to the next failure, also when another process changed it a moment ago. If
    // they cannot be read now, those known are the best there are.
    if (!hasArrived(response)) await this.catalogue.refresh().catch(() => {});
    const outcome = decideOutcome(response, {
      guarantee,
      number: delivery.attempts + 1,
      startedAt,
      acceptedAt: timeOfId(delivery.notificationId),
      failures: delivery.failures,
      policy: this.retryPolicies.for(delivery.subscriptionId),
      finalStatuses: this.finalStatuses,
      hasMoved: hasMoved(),
      expiresAt: delivery.expiresAt,
      nowMs: this.ledgerClock.now(),
      random: Math.random(),
    });
    this.reporter.ended(delivery, guarantee, outcome);
    return outcome;
  }
}
