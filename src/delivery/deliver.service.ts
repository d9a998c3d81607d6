import { Injectable, Logger } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { Idempotency, type Done, type Handled, type Idempotent } from '../idempotency/idempotency.service.js';
import { Clock } from '../infra/clock.js';
import type { Settlement } from '../ledger/delivery.js';
import { Ledger } from '../ledger/ledger.service.js';
import type { QueuedDelivery } from '../queue/chunk.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { AttemptStates } from './attempt-states.js';
import { decideOutcome, type DeliveryOutcome } from './decide-outcome.js';
import { EndpointWindows } from './endpoint-window.js';
import { untilItWorks } from './until-it-works.js';
import { userAgent } from './user-agent.js';
import { WebhookClient, type WebhookResponse } from './webhook-client.js';

interface Task {
  delivery: QueuedDelivery;
  subscription: Subscription;
  body: Buffer;
  onSending: () => void;
}

/** Beyond the time a call may take, before a delivery that somebody else seems to be sending is looked at again. */
const inFlightSlackMs = 6000;

/** Hot path, second half: lock → send → decide → settle, for one delivery. Taking and acknowledging is the worker's. */
@Injectable()
export class DeliverService {
  private readonly logger = new Logger(DeliverService.name);
  private readonly windows: EndpointWindows;
  private readonly atLeastOnce: Idempotent<Task, DeliveryOutcome>;

  constructor(
    private readonly config: Config,
    private readonly clock: Clock,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly retryPolicies: RetryPolicies,
    private readonly ledger: Ledger,
    private readonly webhooks: WebhookClient,
    private readonly attemptStates: AttemptStates,
    idempotency: Idempotency,
  ) {
    const { settings } = config;
    this.windows = new EndpointWindows(settings.MAX_IN_FLIGHT_PER_ENDPOINT, () => performance.now());
    this.atLeastOnce = idempotency.make((task: Task) => this.send(task), {
      operation: 'delivery',
      lockTtlMs: settings.TTL_LOCK_TIME_LIMIT_MS,
      keepTtlMs: settings.TTL_IDEMPOTENCY_SEC * 1000,
      mayTakeOver: true,
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
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    const done: Done<DeliveryOutcome> | undefined = subscription
      ? await untilItWorks(
          () => this.atLeastOnce.do(idOf(delivery), { delivery, subscription, body, onSending }),
          stopping,
        )
      : { kind: 'executed', outcome: { kind: 'cancelled' } };
    if (!done) return false;
    return (await untilItWorks(() => this.settle(delivery, done), stopping)) ?? false;
  }

  private async send({ delivery, subscription, body, onSending }: Task): Promise<Handled<DeliveryOutcome>> {
    const window = this.windows.of(subscription.callbackUrl);
    if (!(await window.enter())) return { outcome: { kind: 'held', afterMs: window.holdMs() }, isFinal: false };
    const number = delivery.attempts + 1;
    const startedAt = this.clock.now();
    onSending();
    if (number > 1) this.rememberSending(delivery, number);
    const response = await this.webhooks.post({
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
    if (response.kind === 'abandoned') {
      window.leave(true, 0);
      return { outcome: { kind: 'held', afterMs: 0 }, isFinal: false };
    }
    window.leave(isHealthy(response), response.durationMs);
    const outcome = await this.decide({ response, number, startedAt }, delivery);
    this.report(delivery, outcome);
    return { outcome, isFinal: outcome.kind === 'delivered' || outcome.kind === 'failed' };
  }

  private async decide(
    sent: { response: Exclude<WebhookResponse, { kind: 'abandoned' }>; number: number; startedAt: number },
    delivery: QueuedDelivery,
  ): Promise<DeliveryOutcome> {
    const { response } = sent;
    const isSuccess = response.kind === 'answered' && response.status >= 200 && response.status < 300;
    // A changed policy applies to the next failure, also when another process changed it a moment ago.
    if (!isSuccess) await this.catalogue.refresh().catch(() => {}); // unreachable: the policy known is the best there is
    const policy = this.retryPolicies.for(delivery.subscriptionId);
    return decideOutcome(sent, delivery.failures, policy, this.clock.now(), Math.random());
  }

  private async settle(delivery: QueuedDelivery, done: Done<DeliveryOutcome>): Promise<true> {
    if (done.kind === 'executed' || done.kind === 'replayed') {
      if (done.kind === 'replayed') this.logger.log({ event: 'delivery.filtered', ...keyOf(delivery) });
      await this.ledger.settle(settlementOf(delivery, done.outcome));
      this.remember(delivery, done.outcome);
      return true;
    }
    // Somebody is sending it, or died doing so: what they do not settle in good time comes back.
    const { NOTIFICATION_REQUESTS_TIMEOUT } = this.config.settings;
    await this.ledger.shortenLease([delivery], NOTIFICATION_REQUESTS_TIMEOUT * 1000 + inFlightSlackMs);
    return true;
  }

  private report(delivery: QueuedDelivery, outcome: DeliveryOutcome): void {
    if (!('attempt' in outcome)) return;
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
      NOTIFICATION_REQUESTS_TIMEOUT * 1000 + inFlightSlackMs,
    );
  }

  private remember(delivery: QueuedDelivery, outcome: DeliveryOutcome): void {
    if (outcome.kind === 'retry') {
      const { number, status, error } = outcome.attempt;
      const nextAttemptAt = new Date(this.clock.now() + outcome.afterMs).toISOString();
      this.attemptStates.put(
        delivery,
        { attempt: number, status: 'waiting', lastStatus: status, lastError: error, nextAttemptAt },
        outcome.afterMs + this.config.settings.DELIVERY_LEASE_MS,
      );
    } else if ('attempt' in outcome && delivery.attempts > 0) this.attemptStates.remove(delivery);
  }
}

function isHealthy(response: WebhookResponse): boolean {
  return response.kind === 'answered' && response.status < 500 && response.status !== 429;
}

function keyOf({ notificationId, subscriptionId, generation }: QueuedDelivery) {
  return { notificationId, subscriptionId, generation };
}

/** A replay is a new delivery to the receiver's mind and ours: the seal of the former one must not filter it. */
function idOf({ notificationId, subscriptionId, replays }: QueuedDelivery): string {
  return `${notificationId}:${subscriptionId}${replays === 0 ? '' : `:${replays}`}`;
}

function settlementOf(delivery: QueuedDelivery, outcome: DeliveryOutcome): Settlement {
  const key = keyOf(delivery);
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
