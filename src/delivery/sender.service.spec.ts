import { afterEach, describe, expect, it } from '@jest/globals';
import { readSettings } from '../config/settings.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { SigningKey } from '../signing/signing-key.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import type { AttemptStates } from './attempt-states.js';
import { Sender } from './sender.service.js';
import type { WebhookClient, WebhookRequest } from './webhook-client.js';
import { newDelivery } from '../../test/support/new-delivery.js';

describe('a call to a receiver', () => {
  const config = { settings: readSettings({}) };
  /** By the ledger's clock. */
  const now = 1735689600_000;
  const delivery = newDelivery({
    notificationId: '019a1b2c-0000-7000-8000-000000000000',
    generation: 2,
    attempts: 1,
    failures: 1,
    body: Buffer.from('{"naam":"Zaak één"}'),
  });
  const reporters: AttemptReporter[] = [];
  afterEach(() => {
    for (const reporter of reporters.splice(0)) reporter.onModuleDestroy();
  });

  /** What is sent, how long its live state is kept, and what comes of it without a receiver. */
  function send(subscription: Partial<Subscription>) {
    const requests: WebhookRequest[] = [];
    const kept: number[] = [];
    const states = { put: (_key: unknown, _state: unknown, keepMs: number) => void kept.push(keepMs) };
    const heartbeat = { ledgerNow: () => now } as unknown as Heartbeat;
    const reporter = new AttemptReporter(states as unknown as AttemptStates, heartbeat, config);
    reporters.push(reporter);
    const client = { post: (request: WebhookRequest) => void requests.push(request) } as unknown as WebhookClient;
    const { timeoutSeconds = null, signingKeys = [] } = subscription;
    const whole = { callbackUrl: 'http://receiver/', auth: 'Bearer x', timeoutSeconds, signingKeys } as Subscription;
    const response = new Sender(client, reporter, config).send(delivery, whole, 'at-least-once');
    return { requests, kept, response };
  }
  const headersOf = (signingKeys: SigningKey[]) => send({ signingKeys }).requests[0]!.headers;

  it.each([
    [null, 10_000],
    [0.2, 200],
    [45, 45_000],
    [300, 49_999], // this process has a shorter lease than the one where it was set
  ])(
    'has the time that its subscription allows, and its live state is kept as long: %s s',
    (timeoutSeconds, timeoutMs) => {
      const { requests, kept } = send({ timeoutSeconds });
      expect(requests.map((request) => request.timeoutMs)).toEqual([timeoutMs]);
      expect(kept).toHaveLength(1);
      expect(kept[0]).toBeGreaterThan(timeoutMs);
    },
  );

  const unsigned = {
    'content-type': 'application/json',
    accept: '*/*',
    'user-agent': expect.stringMatching(/^Heraut\//),
    authorization: 'Bearer x',
    'webhook-id': delivery.notificationId,
    'webhook-attempt': '2',
  };
  const secret = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
  const key = (given: string, endsAt: number | null = null) => new SigningKey('id', 'v1', given, 0, endsAt);

  it('is not signed without a key, or when the last one has ended', () => {
    expect(headersOf([])).toEqual(unsigned);
    expect(headersOf([key(secret, now)])).toEqual(unsigned);
  });

  it('is signed beside its authorization, as of the time when it begins', () => {
    const headers = headersOf([key(secret), key(`whsec_${'/'.repeat(32)}`, now + 1)]);
    const signature = { 'webhook-timestamp': String(now / 1000), 'webhook-signature': expect.any(String) };
    expect(headers).toEqual({ ...unsigned, ...signature });
    expect(headers['webhook-signature']).toMatch(/^v1,\S{44} v1,\S{44}$/);
  });

  it('is not made where a key cannot be used, and says so', async () => {
    const { requests, response } = send({ signingKeys: [key('whsec_broken')] });
    expect(requests).toEqual([]);
    expect(await response).toMatchObject({ kind: 'unanswered', wasSent: false, isOurs: true });
    expect(await response).toMatchObject({ reason: expect.stringContaining('could not be signed') });
  });
});
