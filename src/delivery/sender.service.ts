import { Injectable } from '@nestjs/common';
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
  ) {}

  /** Never rejects: what receivers do is a response. */
  send(delivery: Loaded, { callbackUrl, auth }: Subscription): Promise<WebhookResponse> {
    const number = delivery.attempts + 1;
    this.reporter.started(delivery, number);
    return this.webhooks.post({
      url: callbackUrl,
      headers: {
        'content-type': 'application/json',
        accept: '*/*',
        'user-agent': userAgent,
        authorization: auth,
        'webhook-id': delivery.notificationId,
        'webhook-attempt': String(number),
      },
      body: delivery.body,
    });
  }
}
