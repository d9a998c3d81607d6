import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Tally } from '../activity/tally.js';
import { Config } from '../config/config.module.js';
import type { Delivery } from '../ledger/delivery.js';
import { timeOfId } from '../ledger/partitions.js';
import type { Outcome } from '../ledger/settle.service.js';
import { LiveEvents } from '../live-events/live-events.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { laneTaken } from '../queue/delivery-queue.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import type { TraceFields } from '../telemetry/tracing.js';
import { AttemptStates, type AttemptState } from './attempt-states.js';
import { attemptsCounted, attemptSeconds, callsNotMade, deliveredSeconds } from './delivery.counters.js';
import type { CallFacts } from './webhook-client.js';

/** How long after the end of its call the live state of a delivery is kept, for what comes in between. */
const slackMs = 6000;

/**
 * A first attempt gets a live state when its call has been open for this long. Most are over within milliseconds,
 * before anybody could look, and one more write to Redis for each would cost a worker a tenth of its CPU.
 */
const shownAfterMs = 1000;

interface OpenCall {
  /** Milliseconds since 1970, by the ledger's clock. */
  startedAt: number;
  timeoutMs: number;
}

/** Tells operators of attempts, as they happen: in the log, in the counters, and in the live state. */
@Injectable()
export class AttemptReporter implements OnModuleDestroy {
  private readonly logger = new Logger('Delivery');
  private readonly leaseMs: number;
  /** First attempts that are not shown yet, in the order of their starts. */
  private readonly young = new Map<Delivery, OpenCall>();
  /** First attempts whose live state says that they are being sent. */
  private readonly shown = new Set<Delivery>();
  /** Of attempts that are traced. */
  private readonly traces = new WeakMap<Delivery, TraceFields>();
  private readonly sweep: NodeJS.Timeout;

  constructor(
    private readonly attemptStates: AttemptStates,
    private readonly ledgerClock: LedgerClock,
    private readonly liveEvents: LiveEvents,
    private readonly tally: Tally,
    { settings }: Config,
  ) {
    this.leaseMs = settings.DELIVERY_LEASE_MS;
    this.sweep = setInterval(() => this.showLong(), shownAfterMs / 4).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.sweep);
  }

  /** Before the call. @returns when that is: milliseconds since 1970, by the ledger's clock */
  started(delivery: Delivery, number: number, timeoutMs: number): number {
    const call = { startedAt: this.ledgerClock.now(), timeoutMs };
    if (number === 1) this.young.set(delivery, call);
    else this.show(delivery, number, call);
    return call.startedAt;
  }

  /** Its line in the log names its span. */
  traced(delivery: Delivery, fields: TraceFields): void {
    this.traces.set(delivery, fields);
  }

  /** After the call, and what it came to. */
  ended(delivery: Delivery, guarantee: DeliveryGuarantee, outcome: Outcome): void {
    if (outcome.attempt) attemptsCounted.inc({ guarantee, outcome: outcome.state });
    else if (outcome.reason !== undefined) callsNotMade.inc(); // else it was abandoned
    this.time(delivery, outcome);
    this.log(delivery, outcome);
    this.young.delete(delivery);
    const wasShown = this.shown.delete(delivery) || delivery.attempts > 0;
    if (outcome.state === 'waiting' && outcome.attempt) {
      const { number, status, error } = outcome.attempt;
      const nextAttemptAt = new Date(this.ledgerClock.now() + outcome.delayMs).toISOString();
      const state = {
        attempt: number,
        status: 'waiting',
        lastStatus: status,
        lastError: error,
        startedAt: null,
        nextAttemptAt,
      } as const;
      this.attemptStates.put(delivery, state, outcome.delayMs + this.leaseMs);
    } else if (wasShown) this.attemptStates.remove(delivery);
  }

  /**
   * Our own stop ended the call after it was sent, and another process makes it again. It is no attempt: nothing but
   * this line tells why a receiver, which may have acted on it, saw one more.
   */
  abandoned(delivery: Delivery, startedAt: number, { durationMs, address }: CallFacts): void {
    const { notificationId, subscriptionId, attempts } = delivery;
    this.logger.warn({
      event: 'delivery.abandoned',
      notificationId,
      subscriptionId,
      attempt: attempts + 1,
      startedAt: new Date(startedAt).toISOString(),
      durationMs: Math.round(durationMs),
      address,
      ...this.traces.get(delivery),
    });
  }

  private time(delivery: Delivery, { state, attempt }: Outcome): void {
    if (!attempt) return; // it was abandoned, or not made
    const { status, durationMs } = attempt;
    attemptSeconds.observe({ answer: status === null ? 'none' : `${Math.floor(status / 100)}xx` }, durationMs / 1000);
    if (state !== 'delivered') return this.tally.failedAttempt(delivery.subscriptionId);
    // The clock of a process is corrected by each heartbeat: the time of acceptance may seem to lie ahead.
    const tookMs = Math.max(0, this.ledgerClock.now() - timeOfId(delivery.notificationId));
    deliveredSeconds.observe({ lane: laneTaken(delivery) }, tookMs / 1000);
    // Not the age of one that an operator sends again, or whose first attempt waited in the ledger, scheduled or held:
    // that would hide what is sent at once.
    const isTimed = delivery.replays === 0 && (delivery.generation === 1 || delivery.failures > 0);
    this.tally.delivered(delivery.subscriptionId, isTimed ? tookMs : null);
  }

  private showLong(): void {
    const latest = this.ledgerClock.now() - shownAfterMs;
    for (const [delivery, call] of this.young) {
      if (call.startedAt > latest) return;
      this.young.delete(delivery);
      this.shown.add(delivery);
      this.show(delivery, 1, call);
    }
  }

  private show(delivery: Delivery, attempt: number, { startedAt, timeoutMs }: OpenCall): void {
    const state: AttemptState = {
      attempt,
      status: 'sending',
      lastStatus: null,
      lastError: null,
      startedAt: new Date(startedAt).toISOString(),
      nextAttemptAt: null,
    };
    this.attemptStates.put(delivery, state, timeoutMs + slackMs);
  }

  private log(delivery: Delivery, outcome: Outcome): void {
    const { notificationId, subscriptionId } = delivery;
    const { state, attempt } = outcome;
    const ids = this.traces.get(delivery); // nearly always none
    if (!attempt) {
      const { reason } = outcome; // none: it was abandoned
      if (reason !== undefined)
        this.logger.warn({
          event: 'delivery.not-called',
          notificationId,
          subscriptionId,
          outcome: state,
          reason,
          ...ids,
        });
      return;
    }
    const { number, status, error, details } = attempt;
    const durationMs = Math.round(attempt.durationMs);
    // Field by field: an object that begins with `...` of another one takes V8 as long as all else that a line costs.
    const event = {
      event: 'delivery.attempted' as const,
      notificationId,
      subscriptionId,
      attempt: number,
      durationMs,
      status,
      outcome: state,
    };
    if (ids) Object.assign(event, ids);
    if (this.liveEvents.isOn) {
      const live = { event: event.event, notificationId, subscriptionId, attempt: number, durationMs, status };
      this.liveEvents.report({ ...live, state, reason: error });
    }
    if (state === 'delivered') this.logger.log(event);
    else this.logger.warn({ ...event, reason: error, address: details?.address ?? null });
  }
}
