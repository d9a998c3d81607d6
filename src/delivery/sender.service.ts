import { Injectable, Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import type { QueuedDelivery } from '../queue/chunk.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import { AttemptStates } from './attempt-states.js';
import { decideOutcome, isSuccess, type DeliveryOutcome, type Sent } from './decide-outcome.js';
import { attemptsCounted } from './delivery.counters.js';
import { EndpointWindows } from './endpoint-window.js';
import { userAgent } from './user-agent.js';
import { WebhookClient, type WebhookResponse } from './webhook-client.js';

export interface Task {
  delivery: QueuedDelivery;
  subscription: Subscription;
  guarantee: DeliveryGuarantee;
  body: Buffer;
  /** Called right before the call to the receiver. */
  onSending: () => void;
  stopping: AbortSignal;
}

/** How long after the end of its call the live state of a delivery is kept, for what comes in between. */
const stateSlackMs = 6000;

/** A bug of ours keeps a delivery from being decided: it is looked at again, without haste. */
const undecidedHoldMs = 60_000;

/** send → decide: one call to a receiver, when its endpoint has room, and what follows from the answer. */
@Injectable()
export class Sender {
  private readonly logger = new Logger(Sender.name);
  private readonly windows: EndpointWindows;

  constructor(
    private readonly config: Config,
    private readonly clock: Clock,
    private readonly heartbeat: Heartbeat,
    private readonly catalogue: Catalogue,
    private readonly retryPolicies: RetryPolicies,
    private readonly webhooks: WebhookClient,
    private readonly attemptStates: AttemptStates,
  ) {
    this.windows = new EndpointWindows(config.settings.MAX_IN_FLIGHT_PER_ENDPOINT, () => performance.now());
  }

  /**
   * @param mayCall asked once the endpoint has room; unless it says yes, there is no call
   * @returns undefined when `mayCall` said no
   */
  async send(task: Task, mayCall?: () => Promise<boolean>): Promise<DeliveryOutcome | undefined> {
    const window = this.windows.of(task.subscription.callbackUrl);
    if (!(await window.enter())) return { kind: 'held', afterMs: window.holdMs() };
    let isAllowed = false;
    try {
      isAllowed = mayCall === undefined || (await mayCall());
    } finally {
      if (!isAllowed) window.leave('none', 0);
    }
    if (!isAllowed) return undefined;
    const number = task.delivery.attempts + 1;
    const startedAt = this.clock.now();
    task.onSending();
    if (number > 1) this.rememberSending(task.delivery, number);
    const response = await this.call(task, number);
    const durationMs = response.kind === 'abandoned' ? 0 : response.durationMs;
    window.leave(verdictOn(response), durationMs);
    return this.conclude(task, { response, number, startedAt, durationMs });
  }

  /** Never rejects: the call was made, and whoever heard of a failure here would make it again. */
  private async conclude(task: Task, sent: Sent): Promise<DeliveryOutcome> {
    let outcome: DeliveryOutcome;
    try {
      outcome = await this.decide(task, sent);
    } catch (error) {
      this.logger.error({ event: 'delivery.undecided', notificationId: task.delivery.notificationId, error });
      return { kind: 'held', afterMs: undecidedHoldMs };
    }
    attemptsCounted.inc({ guarantee: task.guarantee, outcome: outcome.kind });
    this.report(task.delivery, outcome);
    if (sent.number > 1 || outcome.kind === 'retry') this.remember(task.delivery, outcome);
    return outcome;
  }

  private call({ delivery, subscription, body }: Task, number: number): Promise<WebhookResponse> {
    return this.webhooks.post({
      url: subscription.callbackUrl,
      headers: {
        'content-type': 'application/json',
        accept: '*/*',
        'user-agent': userAgent,
        authorization: subscription.auth,
        'webhook-id': delivery.notificationId,
        'webhook-attempt': String(number),
      },
      body,
    });
  }

  private async decide(
    { delivery, guarantee }: Task,
    sent: Parameters<typeof decideOutcome>[0],
  ): Promise<DeliveryOutcome> {
    // A changed policy applies to the next failure, also when another process changed it a moment ago. If it cannot be
    // read now, the policy known is the best there is.
    if (!isSuccess(sent.response)) await this.catalogue.refresh().catch(() => {});
    return decideOutcome(sent, {
      guarantee,
      failures: delivery.failures,
      policy: this.retryPolicies.for(delivery.subscriptionId),
      expiresAt: delivery.expiresAt,
      nowMs: this.heartbeat.ledgerNow(),
      random: Math.random(),
    });
  }

  private report(delivery: QueuedDelivery, outcome: DeliveryOutcome): void {
    if (!('attempt' in outcome) || !outcome.attempt) return;
    const { number, durationMs, status, error } = outcome.attempt;
    const { notificationId, subscriptionId } = delivery;
    const event = {
      event: 'delivery.attempted',
      notificationId,
      subscriptionId,
      attempt: number,
      durationMs: Math.round(durationMs),
      status,
      outcome: outcome.kind,
    };
    if (outcome.kind === 'delivered') this.logger.log(event);
    else this.logger.warn({ ...event, reason: error });
  }

  private rememberSending(delivery: QueuedDelivery, attempt: number): void {
    const { NOTIFICATION_REQUESTS_TIMEOUT } = this.config.settings;
    this.attemptStates.put(
      delivery,
      { attempt, status: 'sending', lastStatus: null, lastError: null, nextAttemptAt: null },
      NOTIFICATION_REQUESTS_TIMEOUT * 1000 + stateSlackMs,
    );
  }

  private remember(delivery: QueuedDelivery, outcome: DeliveryOutcome): void {
    if (outcome.kind !== 'retry') return this.attemptStates.remove(delivery);
    const { number, status, error } = outcome.attempt;
    const nextAttemptAt = new Date(this.clock.now() + outcome.afterMs).toISOString();
    this.attemptStates.put(
      delivery,
      { attempt: number, status: 'waiting', lastStatus: status, lastError: error, nextAttemptAt },
      outcome.afterMs + this.config.settings.DELIVERY_LEASE_MS,
    );
  }
}

function verdictOn(response: WebhookResponse): 'healthy' | 'unhealthy' | 'none' {
  if (response.kind === 'abandoned') return 'none';
  return response.kind === 'answered' && response.status < 500 && response.status !== 429 ? 'healthy' : 'unhealthy';
}
