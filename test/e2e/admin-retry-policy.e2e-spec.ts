import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { AdminApi } from '../support/admin-api.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';

const defaults = { maxRetries: 7, backoffFactor: 25, baseFactor: 4, maxDelaySeconds: 52_000, jitter: 0 };

describe('the retry policy', () => {
  let admin: AdminApi;
  let receiver: Receiver;

  beforeAll(async () => {
    admin = await AdminApi.start();
    receiver = await Receiver.start();
    await admin.api.post('/kanaal', { naam: 'cases', documentatieLink: 'https://docs.example.org/', filters: [] });
  });

  afterAll(async () => {
    await receiver.stop();
    await admin.close();
  });

  beforeEach(async () => {
    await admin.put('/admin/v1/retry-policy', {});
  });

  async function subscribe(): Promise<string> {
    const { json } = await admin.api.post('/abonnement', {
      callbackUrl: receiver.url,
      auth: 'Bearer receiver',
      kanalen: [{ naam: 'cases', filters: {} }],
    });
    return lastPart(json.url);
  }

  it('has the defaults until it is changed', async () => {
    expect((await admin.get('/admin/v1/retry-policy')).json).toEqual(defaults);
  });

  it('previews eight attempts over 23 h 55 m 25 s by default', async () => {
    const { json } = await admin.get('/admin/v1/retry-policy/preview');
    const attempts = json.attempts as {
      attempt: number;
      delaySeconds: number;
      elapsedSeconds: number;
      elapsed: string;
    }[];
    expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(attempts.map(({ delaySeconds }) => delaySeconds)).toEqual([0, 25, 100, 400, 1600, 6400, 25_600, 52_000]);
    expect(attempts.map(({ elapsed }) => elapsed)).toEqual([
      '0 s',
      '25 s',
      '2 m 5 s',
      '8 m 45 s',
      '35 m 25 s',
      '2 h 22 m 5 s',
      '9 h 28 m 45 s',
      '23 h 55 m 25 s',
    ]);
    expect(attempts.at(-1)!.elapsedSeconds).toBe(86_125);
  });

  it('previews a change over the saved policy without saving it', async () => {
    await admin.put('/admin/v1/retry-policy', { baseFactor: 2 });
    const { json } = await admin.get('/admin/v1/retry-policy/preview?maxRetries=2&backoffFactor=true&jitter=0.5');
    expect(json.policy).toEqual({ ...defaults, maxRetries: 2, backoffFactor: 1, baseFactor: 2, jitter: 0.5 });
    expect(json.attempts).toHaveLength(3);
    expect(json.attempts[2]).toMatchObject({
      delaySeconds: 2,
      shortestDelaySeconds: 1.5,
      longestDelaySeconds: 2.5,
      elapsedSeconds: 3,
    });
    expect((await admin.get('/admin/v1/retry-policy')).json).toEqual({ ...defaults, baseFactor: 2 });
  });

  it('is replaced as a whole: a field left out gets its default', async () => {
    const changed = { maxRetries: 3, backoffFactor: 0.5, baseFactor: 1.5, maxDelaySeconds: 60, jitter: 0.1 };
    expect((await admin.put('/admin/v1/retry-policy', changed)).json).toEqual(changed);
    expect((await admin.put('/admin/v1/retry-policy', { maxRetries: 5 })).json).toEqual({ ...defaults, maxRetries: 5 });
    expect((await admin.get('/admin/v1/retry-policy')).json).toEqual({ ...defaults, maxRetries: 5 });
  });

  it('reads a backoff factor of true as 1', async () => {
    expect((await admin.put('/admin/v1/retry-policy', { backoffFactor: true })).json).toMatchObject({
      backoffFactor: 1,
    });
  });

  it('names every wrong field at once and changes nothing', async () => {
    const { status, json } = await admin.put('/admin/v1/retry-policy', { maxRetries: 101, jitter: '0', maxRetrys: 1 });
    expect(status).toBe(400);
    expect(json).toMatchObject({
      code: 'invalid',
      invalidParams: [
        { name: 'maxRetries', code: 'max_value' },
        { name: 'jitter', code: 'invalid' },
        { name: 'maxRetrys', code: 'unknown' },
      ],
    });
    expect((await admin.get('/admin/v1/retry-policy')).json).toEqual(defaults);
  });

  it.each([
    ['maxRetries=-1', 'maxRetries', 'min_value'],
    ['maxRetries=', 'maxRetries', 'invalid'],
    ['maxRetries=2&maxRetries=3', 'maxRetries', 'invalid'],
    ['baseFactor=0x10', 'baseFactor', 'invalid'],
    ['baseFactor=Infinity', 'baseFactor', 'invalid'],
    ['jitter=true', 'jitter', 'invalid'],
    ['retries=2', 'nonFieldErrors', 'unknown-parameters'],
  ])('refuses to preview %s', async (query, name, code) => {
    const { status, json } = await admin.get(`/admin/v1/retry-policy/preview?${query}`);
    expect(status).toBe(400);
    expect(json.invalidParams).toMatchObject([{ name, code }]);
  });

  it('refuses a query parameter where there are none', async () => {
    expect((await admin.get('/admin/v1/retry-policy?maxRetries=1')).status).toBe(400);
    expect((await admin.put('/admin/v1/retry-policy?dryRun=true', { maxRetries: 1 })).status).toBe(400);
    expect((await admin.get('/admin/v1/retry-policy')).json).toEqual(defaults);
  });

  it('is overridden for one subscription, field by field', async () => {
    const [one, other] = [await subscribe(), await subscribe()];
    const { status, json } = await admin.put(`/admin/v1/subscriptions/${one}/retry-policy`, { maxRetries: 2 });
    expect(status).toBe(200);
    expect(json).toEqual({ ...defaults, maxRetries: 2, overrides: { maxRetries: 2 } });

    await admin.put('/admin/v1/retry-policy', { maxRetries: 9, baseFactor: 3 });
    expect((await admin.get(`/admin/v1/subscriptions/${one}/retry-policy`)).json).toEqual({
      ...defaults,
      maxRetries: 2,
      baseFactor: 3,
      overrides: { maxRetries: 2 },
    });
    expect((await admin.get(`/admin/v1/subscriptions/${other}/retry-policy`)).json).toEqual({
      ...defaults,
      maxRetries: 9,
      baseFactor: 3,
      overrides: {},
    });
  });

  it('replaces the override of a subscription as a whole', async () => {
    const path = `/admin/v1/subscriptions/${await subscribe()}/retry-policy`;
    await admin.put(path, { maxRetries: 2 });
    expect((await admin.put(path, { jitter: 1 })).json).toEqual({ ...defaults, jitter: 1, overrides: { jitter: 1 } });
  });

  it('is the general one again when the override is deleted, however often', async () => {
    const path = `/admin/v1/subscriptions/${await subscribe()}/retry-policy`;
    await admin.put(path, { maxRetries: 2 });
    expect((await admin.delete(path)).status).toBe(204);
    expect((await admin.get(path)).json).toEqual({ ...defaults, overrides: {} });
    expect((await admin.delete(path)).status).toBe(204);
  });

  it('is forgotten together with its subscription', async () => {
    const policies = admin.api.app.get(RetryPolicies);
    const subscriptionId = await subscribe();
    await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { maxRetries: 2 });
    expect(policies.override(subscriptionId)).toEqual({ maxRetries: 2 });
    await admin.api.delete(`/abonnement/${subscriptionId}`);
    expect(policies.override(subscriptionId)).toBeUndefined();
  });

  it('accepts the UUID of the subscription in any case', async () => {
    const subscriptionId = await subscribe();
    await admin.put(`/admin/v1/subscriptions/${subscriptionId.toUpperCase()}/retry-policy`, { maxRetries: 1 });
    const { json } = await admin.get(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`);
    expect(json.overrides).toEqual({ maxRetries: 1 });
  });

  it.each(['an unknown', 'a deleted', 'no'])('answers 404 for %s subscription', async (which) => {
    let subscriptionId: string = which === 'an unknown' ? randomUUID() : 'everything';
    if (which === 'a deleted') {
      subscriptionId = await subscribe();
      await admin.api.delete(`/abonnement/${subscriptionId}`);
    }
    const path = `/admin/v1/subscriptions/${subscriptionId}/retry-policy`;
    for (const { status, json } of [await admin.get(path), await admin.put(path, {}), await admin.delete(path)]) {
      expect(status).toBe(404);
      expect(json.code).toBe('not_found');
    }
  });

  it.each([
    ['a call without a token', () => null],
    ['a token of an unknown application', () => 'x.y.z'],
    ['a publisher', () => admin.api.tokenWith('notificaties.publiceren', 'notificaties.consumeren')],
  ])('is not for %s', async (_who, token) => {
    const request = { token: await token() };
    expect((await admin.get('/admin/v1/retry-policy', request)).status).toBe(403);
    expect((await admin.get('/admin/v1/retry-policy/preview?nonsense', request)).status).toBe(403);
    // A caller that is not allowed learns nothing about the body.
    expect((await admin.put('/admin/v1/retry-policy', { maxRetries: -1 }, request)).status).toBe(403);
  });
});
