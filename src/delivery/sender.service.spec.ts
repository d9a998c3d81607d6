import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../config/settings.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import type { AttemptStates } from './attempt-states.js';
import { Sender } from './sender.service.js';
import type { WebhookClient, WebhookRequest } from './webhook-client.js';
import { newDelivery } from '../../test/support/new-delivery.js';

describe('a call to a receiver', () => {
  it.each([
    [null, 10_000],
    [0.2, 200],
    [45, 45_000],
    [300, 49_999], // this process has a shorter lease than the one where it was set
  ])(
    'has the time that its subscription allows, and its live state is kept as long: %s s',
    (timeoutSeconds, timeoutMs) => {
      const config = { settings: readSettings({}) };
      const requests: WebhookRequest[] = [];
      const kept: number[] = [];
      const states = { put: (_key: unknown, _state: unknown, keepMs: number) => void kept.push(keepMs) };
      const heartbeat = { ledgerNow: () => 0 } as unknown as Heartbeat;
      const reporter = new AttemptReporter(states as unknown as AttemptStates, heartbeat, config);
      const client = { post: (request: WebhookRequest) => void requests.push(request) } as unknown as WebhookClient;
      const delivery = newDelivery({ generation: 2, attempts: 1, failures: 1, body: Buffer.from('{}') });
      const subscription = { callbackUrl: 'http://receiver/', auth: '', timeoutSeconds } as Subscription;
      void new Sender(client, reporter, config).send(delivery, subscription, 'at-least-once');
      expect(requests.map((request) => request.timeoutMs)).toEqual([timeoutMs]);
      expect(kept).toHaveLength(1);
      expect(kept[0]).toBeGreaterThan(timeoutMs);
      reporter.onModuleDestroy();
    },
  );
});
