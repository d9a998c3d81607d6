import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import type { Loaded } from './chunk-loader.service.js';
import { userAgent } from './user-agent.js';
import { WebhookClient, type WebhookResponse } from './webhook-client.js';

/** One call to a receiver. */
@Injectable()
export class Sender {
  private readonly timeoutMs: number;

  constructor(
    private readonly webhooks: WebhookClient,
    private readonly reporter: AttemptReporter,
    private readonly config: Config,
  ) {}

  /** Never rejects: what receivers do is a response. */
  send(delivery: Loaded, subscription: Subscription, guarantee: DeliveryGuarantee): Promise<WebhookResponse> {
    const number = delivery.attempts + 1;
    const timeoutMs = callTimeoutMs(subscription, this.config.settings);
    const startedAt = this.reporter.started(delivery, number, timeoutMs);
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      accept: '*/*',
      'user-agent': userAgent,
      authorization: subscription.auth,
      'webhook-id': delivery.notificationId,
      'webhook-attempt': String(number),
    };
    const { signingKeys } = subscription;
    if (signingKeys.length > 0) {
      const message = { id: delivery.notificationId, at: startedAt, body: delivery.body };
      try {
        Object.assign(headers, signatureHeaders(signingKeys, message));
      } catch (error) {
        return Promise.resolve(notSigned(error as Error)); // the worker goes on: it is an error of this one subscription
      }
    }
    return this.webhooks.post({
      url: subscription.callbackUrl,
      headers,
      body: delivery.body,
      timeoutMs,
      mayRepeat: guarantee === 'at-least-once',
    });
  }
}

/** Nothing is sent without the signature that its receiver waits for. */
const notSigned = ({ message }: Error): WebhookResponse => ({
  kind: 'unanswered',
  reason: `it could not be signed, end the signing key and make another: ${message}`,
  wasSent: false,
  isOurs: true,
  durationMs: 0,
  connectMs: null,
  firstByteMs: null,
  address: null,
});
