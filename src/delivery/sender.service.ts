import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Authorizations } from '../credentials/authorizations.service.js';
import { verbatim } from '../credentials/credentials.js';
import { userAgent } from '../infra/user-agent.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import { Tracing, type OpenSpan } from '../telemetry/tracing.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { beginAttempt, endAttempt } from './attempt-span.js';
import { postAuthorized, sign, type Caller } from './authorized-call.js';
import type { Loaded } from './chunk-loader.service.js';
import { WebhookClient, type WebhookRequest, type WebhookResponse } from './webhook-client.js';

/** One call to a receiver. */
@Injectable()
export class Sender {
  constructor(
    private readonly webhooks: WebhookClient,
    private readonly authorizations: Authorizations,
    private readonly reporter: AttemptReporter,
    private readonly tracing: Tracing,
    private readonly config: Config,
  ) {}

  /**
   * Never rejects: what receivers do is a response.
   * @param caller is told when the receiver is called: after any wait for a token, which is not the receiver's fault
   */
  send(
    delivery: Loaded,
    subscription: Subscription,
    guarantee: DeliveryGuarantee,
    caller: Caller,
  ): Promise<WebhookResponse> {
    const span = this.beginSpan(delivery, subscription);
    const beganAt = span && Date.now();
    const traceParent = span ? span.traceParent : delivery.traceParent;
    const number = delivery.attempts + 1;
    const timeoutMs = callTimeoutMs(subscription, this.config.settings);
    const startedAt = this.reporter.started(delivery, number, timeoutMs);
    const request: WebhookRequest = {
      url: subscription.callbackUrl,
      headers: {
        'content-type': 'application/json',
        accept: '*/*',
        'user-agent': userAgent,
        authorization: subscription.auth,
        'webhook-id': delivery.notificationId,
        'webhook-attempt': String(number),
      },
      body: delivery.body,
      timeoutMs,
      mayRepeat: guarantee === 'at-least-once',
      mayBeOvertaken: guarantee === 'at-most-once' && subscription.ordering === 'per-object',
    };
    if (subscription.auth === '') delete request.headers.authorization; // rare: the others pay nothing for it
    // A span of the receiver's becomes part of the trace.
    if (traceParent !== undefined) request.headers.traceparent = traceParent;
    const isPlain = subscription.credentials === verbatim && subscription.unreadable === null;
    let response: Promise<WebhookResponse>;
    if (isPlain) {
      const unsigned = sign(request, subscription, startedAt);
      if (!unsigned) caller.begun();
      response = unsigned ? Promise.resolve(unsigned) : this.webhooks.post(request);
    } else response = postAuthorized(this.webhooks, this.authorizations, subscription, request, startedAt, caller);
    if (!span) return response;
    const begunAnew = delivery.attempts > 0 ? undefined : () => this.beginSpan(delivery, subscription, beganAt);
    return endAttempt(span, response, guarantee, begunAnew);
  }

  /** Lines of the log that follow name it. */
  private beginSpan(delivery: Loaded, subscription: Subscription, usedUpNone?: number): OpenSpan | undefined {
    const { tracer } = this.tracing;
    const span = tracer && beginAttempt(tracer, delivery, subscription, usedUpNone);
    if (span) this.reporter.traced(delivery, span.logFields);
    return span;
  }
}
