import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { callTimeoutMs } from '../subscriptions/call-timeout.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import type { Loaded } from './chunk-loader.service.js';
import { userAgent } from './user-agent.js';
import { WebhookClient, type WebhookResponse } from './webhook-client.js';

/** One call to a receiver. */
@Injectable()
export class Sender {
  constructor(
    private readonly webhooks: WebhookClient,
    private readonly reporter: AttemptReporter,
    private readonly config: Config,
  ) {}

  /** Never rejects: what receivers do is a response. */
  send(delivery: Loaded, subscription: Subscription): Promise<WebhookResponse> {
    const number = delivery.attempts + 1;
    const timeoutMs = callTimeoutMs(subscription, this.config.settings);
    this.reporter.started(delivery, number, timeoutMs);
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
      body: delivery.body,
      timeoutMs,
    });
  }
}
