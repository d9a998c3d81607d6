import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Authorizations } from '../credentials/authorizations.service.js';
import { verbatim } from '../credentials/credentials.js';
import type { Unavailable } from '../credentials/unavailable.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import { Tracing } from '../telemetry/tracing.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { beginAttempt, endAttempt } from './attempt-span.js';
import type { Loaded } from './chunk-loader.service.js';
import { notCalled, postponedFor, unreadableFor } from './not-called.js';
import { userAgent } from './user-agent.js';
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

  /** Never rejects: what receivers do is a response. */
  send(delivery: Loaded, subscription: Subscription, guarantee: DeliveryGuarantee): Promise<WebhookResponse> {
    const span = this.tracing.tracer && beginAttempt(this.tracing.tracer, delivery, subscription);
    if (span) this.reporter.traced(delivery, span.logFields);
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
    };
    // A span of the receiver's becomes part of the trace.
    if (traceParent !== undefined) request.headers.traceparent = traceParent;
    const isPlain = subscription.credentials === verbatim && subscription.unreadable === null;
    let response: Promise<WebhookResponse>;
    if (isPlain) {
      const unsigned = sign(request, subscription, startedAt);
      response = unsigned ? Promise.resolve(unsigned) : this.webhooks.post(request);
    } else response = this.sendWith(subscription, request, startedAt);
    return span ? endAttempt(span, response) : response;
  }

  /** With more than its `auth`: an authorization that has to be made first, a certificate, which may have ended, or own headers. */
  private async sendWith(subscription: Subscription, request: WebhookRequest, at: number): Promise<WebhookResponse> {
    const { unreadable, credentials } = subscription;
    const { tls, headers } = credentials;
    if (unreadable !== null) return unreadableFor(unreadable);
    const expiresAt = tls?.expiresAt ?? Infinity;
    if (expiresAt <= Date.now())
      return notCalled(`the client certificate ended at ${new Date(expiresAt).toISOString()}`);
    const startedAt = performance.now();
    const authorization = await within(request.timeoutMs, this.authorizations.of(subscription));
    if (typeof authorization !== 'string')
      return authorization.isRefused ? notCalled(authorization.reason) : postponedFor(authorization);
    const tookMs = performance.now() - startedAt;
    const authorized = {
      ...request,
      headers: { ...headers, ...request.headers, authorization },
      tls,
      // Both together take no longer than the call may: the lease of the delivery counts on that.
      timeoutMs: Math.max(request.timeoutMs - tookMs, 1),
    };
    const unsigned = sign(authorized, subscription, at + tookMs);
    if (unsigned) return unsigned;
    const response = await this.webhooks.post(authorized);
    if (response.kind === 'answered' && response.status === 401)
      this.authorizations.refused(subscription, authorization);
    return response;
  }
}

/**
 * Adds the signatures of its subscription, which mostly has no keys.
 * @param at milliseconds since 1970, by the ledger's clock
 * @returns what comes of a call that cannot be signed, and therefore is not made
 */
function sign(
  { headers, body }: WebhookRequest,
  { signingKeys }: Subscription,
  at: number,
): WebhookResponse | undefined {
  if (signingKeys.length === 0) return undefined;
  try {
    Object.assign(headers, signatureHeaders(signingKeys, { id: headers['webhook-id']!, at, body }));
    return undefined;
  } catch (error) {
    return notCalled(`it cannot be signed, make another key: ${(error as Error).message}`);
  }
}

const late: Unavailable = {
  reason: 'the token endpoint has not answered within the time of a call',
  isRefused: false,
  forMs: 0, // it is still asked; when that has failed, there is a reason
  againInMs: 1000,
};

/** What is there at once costs no timer. */
async function within(ms: number, authorization: ReturnType<Authorizations['of']>): Promise<string | Unavailable> {
  if (!(authorization instanceof Promise)) return authorization;
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<Unavailable>((resolve) => (timer = setTimeout(() => resolve(late), ms)));
  try {
    return await Promise.race([authorization, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}
