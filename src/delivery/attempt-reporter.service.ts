import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import type { Delivery } from '../ledger/delivery.js';
import type { Outcome } from '../ledger/settle.service.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import { AttemptStates } from './attempt-states.js';
import { attemptsCounted } from './delivery.counters.js';

/** How long after the end of its call the live state of a delivery is kept, for what comes in between. */
const slackMs = 6000;

/** Tells operators of attempts, as they happen: in the log, in the counters, and in the live state of what is retried. */
@Injectable()
export class AttemptReporter {
  private readonly logger = new Logger('Delivery');
  private readonly leaseMs: number;

  constructor(
    private readonly attemptStates: AttemptStates,
    private readonly heartbeat: Heartbeat,
    { settings }: Config,
  ) {
    this.leaseMs = settings.DELIVERY_LEASE_MS;
  }

  /** Before the call. First attempts are too many, and over too soon, to be worth a live state. */
  started(delivery: Delivery, number: number, timeoutMs: number): void {
    if (number === 1) return;
    const state = {
      attempt: number,
      status: 'sending',
      lastStatus: null,
      lastError: null,
      nextAttemptAt: null,
    } as const;
    this.attemptStates.put(delivery, state, timeoutMs + slackMs);
  }

  /** After the call, and what it came to. */
  ended(delivery: Delivery, guarantee: DeliveryGuarantee, outcome: Outcome): void {
    attemptsCounted.inc({ guarantee, outcome: outcome.state });
    this.log(delivery, outcome);
    if (outcome.state === 'waiting' && outcome.attempt) {
      const { number, status, error } = outcome.attempt;
      const nextAttemptAt = new Date(this.heartbeat.ledgerNow() + outcome.delayMs).toISOString();
      const state = {
        attempt: number,
        status: 'waiting',
        lastStatus: status,
        lastError: error,
        nextAttemptAt,
      } as const;
      this.attemptStates.put(delivery, state, outcome.delayMs + this.leaseMs);
    } else if (delivery.attempts > 0) this.attemptStates.remove(delivery);
  }

  private log({ notificationId, subscriptionId }: Delivery, { state, attempt }: Outcome): void {
    if (!attempt) return;
    const { number, durationMs, status, error } = attempt;
    const event = {
      event: 'delivery.attempted',
      notificationId,
      subscriptionId,
      attempt: number,
      durationMs: Math.round(durationMs),
      status,
      outcome: state,
    };
    if (state === 'delivered') this.logger.log(event);
    else this.logger.warn({ ...event, reason: error });
  }
}
