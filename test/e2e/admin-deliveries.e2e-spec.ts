import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { attachPartition, createPartition, partitionsBetween, type Partition } from '../../src/ledger/partitions.js';
import { NotificationReader } from '../../src/notifications/notification-reader.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { superuser } from '../support/api.js';
import { DeliveryScene, notificationOn } from '../support/delivery-scene.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { answer, hang, protectedReceiver, type Receiver } from '../support/receiver.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('deliveries on the $name stack', (stack) => {
  const scene = new DeliveryScene(stack);
  const { sql, publish, pathOf, becomes, list } = scene;
  let admin: AdminApi;
  let receiver: Receiver;
  let channel: string;
  let subscriptionId: string;

  beforeAll(async () => {
    admin = await scene.open();
  });
  afterAll(() => scene.close());
  beforeEach(async () => {
    ({ receiver, channel, subscriptionId } = await scene.begin());
  });
  afterEach(() => scene.end());

  /** A dead letter of a day that had no partitions yet. */
  async function deadOnDay(daysAgo: number) {
    const at = Date.now() - daysAgo * 86_400_000;
    const partitions = partitionsBetween(at, at);
    const notificationId = uuidv7({ msecs: at });
    for (const partition of partitions) await sql(createPartition(partition));
    await insertNotifications(sql, [notificationId], { channel });
    await insertDeliveries(sql, {
      notifications: [notificationId],
      subscriptionIds: [subscriptionId],
      state: 'failed',
      columns: { ended_at: 'now()' },
    });
    return { notificationId, partitions };
  }

  const detach = ({ table, name }: Partition) => sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);

  it('shows a delivery that arrived with its one attempt', async () => {
    const notificationId = await publish();
    const delivery = await becomes(notificationId, 'delivered');
    expect(delivery).toMatchObject({
      notificationId,
      subscriptionId,
      channel,
      attemptCount: 1,
      failureCount: 0,
      nextAttemptAt: null,
      lastStatus: 204,
      lastError: null,
      attempts: [
        {
          number: 1,
          durationMs: expect.any(Number),
          firstByteMs: expect.any(Number),
          status: 204,
          error: null,
          address: null,
          responseHeaders: null,
          responseBody: null,
        },
      ],
      live: null,
    });
    expect(Date.parse(delivery.endedAt)).toBeGreaterThanOrEqual(Date.parse(delivery.acceptedAt));
  });

  it('is explained, and so is one that was not sent', async () => {
    const notificationId = await publish();
    await becomes(notificationId, 'delivered');
    const path = `/admin/v1/notifications/${notificationId}/explanations`;
    const { json } = await admin.get(path);
    const text = expect.stringMatching(
      /^It matched by entry 1, which has no filters\. It was delivered at .*, after 1 call\.$/,
    );
    expect(json.explanations).toMatchObject([{ subscriptionId, verdict: 'matched', text }]);
    const [{ body }] = (await sql('SELECT body FROM notification WHERE id = $1', [notificationId])) as [
      { body: string },
    ];
    const dryRun = await admin.post('/admin/v1/explain', body);
    expect(dryRun.json).toMatchObject({ body, explanations: [{ subscriptionId, fate: 'sent' }] });
  });

  it('shows a failed attempt, when the next one is due, and the live state while it waits', async () => {
    receiver.next(answer(503, { server: 'kitchen', 'set-cookie': 'a=b' }, 'closed for lunch'));
    const notificationId = await publish();
    const delivery = await becomes(notificationId, 'waiting');
    expect(delivery).toMatchObject({
      attemptCount: 1,
      failureCount: 1,
      lastStatus: 503,
      lastError: expect.stringContaining('closed for lunch'),
      endedAt: null,
      attempts: [
        {
          number: 1,
          status: 503,
          address: new URL(receiver.url).host,
          responseHeaders: { date: expect.any(String), server: 'kitchen' },
          responseBody: 'closed for lunch',
        },
      ],
    });
    expect(delivery.attempts[0]).not.toMatchObject({ responseHeaders: { 'set-cookie': expect.anything() } });
    const live = await eventually(async () => (await admin.get(pathOf(notificationId))).json.live, 'the live state');
    expect(live).toMatchObject({ attempt: 1, status: 'waiting', lastStatus: 503 });
    // The first delay is 25 s, from a time between the attempt and now, by the ledger's clock. The time of the process
    // is corrected every few seconds.
    const correctionMs = 1000;
    for (const { nextAttemptAt } of [delivery, live]) {
      const delayedFrom = Date.parse(nextAttemptAt) - 25_000;
      expect(delayedFrom).toBeGreaterThanOrEqual(Date.parse(delivery.attempts[0]!.startedAt) - correctionMs);
      expect(delayedFrom).toBeLessThanOrEqual(Date.now() + correctionMs);
    }
  });

  it('makes the next attempt at once when told to', async () => {
    receiver.next(answer(500));
    const notificationId = await publish();
    await becomes(notificationId, 'waiting');
    const retried = await admin.post(`${pathOf(notificationId)}/retry`);
    expect(retried.status).toBe(202);

    expect(await becomes(notificationId, 'delivered')).toMatchObject({
      attemptCount: 2,
      replayCount: 0,
      attempts: [
        { number: 1, status: 500 },
        { number: 2, status: 204 },
      ],
    });
    expect(receiver.notifications.map(({ headers }) => headers['webhook-id'])).toEqual([
      notificationId,
      notificationId,
    ]);
  });

  it('keeps a dead letter, lists it, and sends it again when told to', async () => {
    await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { maxRetries: 0 });
    receiver.next(answer(500));
    const notificationId = await publish();
    await becomes(notificationId, 'failed');
    const { deliveries } = await list({ state: 'failed', subscription: subscriptionId });
    expect(deliveries).toMatchObject([{ notificationId, subscriptionId, state: 'failed' }]);
    const group = { subscriptionId, state: 'failed', errorClass: 'status-5xx', count: 1, isAtLeast: false };
    const newest = { notificationId, lastStatus: 500, lastError: expect.stringMatching(/^HTTP 500/) };
    const { json: grouped } = await admin.get(`/admin/v1/dead-letters?subscription=${subscriptionId}`);
    expect(grouped).toMatchObject({ count: 1, isComplete: true, groupsLeftOut: 0, searchedTo: null });
    expect(grouped.groups).toMatchObject([{ ...group, callbackUrl: receiver.url, subscription: 'active', newest }]);

    expect((await admin.post(`${pathOf(notificationId)}/retry`)).status).toBe(202);
    expect(await becomes(notificationId, 'delivered')).toMatchObject({ attemptCount: 2, replayCount: 1 });
    expect(await list({ state: 'failed', subscription: subscriptionId })).toEqual({
      deliveries: [],
      nextCursor: null,
      searchedTo: null,
    });
  });

  it('counts by a changed retry policy from the next failure on', async () => {
    receiver.next(answer(500), answer(500));
    const notificationId = await publish();
    await becomes(notificationId, 'waiting');
    await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { maxRetries: 1 });
    await admin.post(`${pathOf(notificationId)}/retry`);
    expect(await becomes(notificationId, 'failed')).toMatchObject({ attemptCount: 2 });
  });

  it('follows a policy of small numbers to its end', async () => {
    const policy = { maxRetries: 2, backoffFactor: 0.05, baseFactor: 2 };
    await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, policy);
    receiver.always(answer(500));
    const { attempts } = await becomes(await publish(), 'failed');
    expect(attempts).toHaveLength(3);
    const [first, second, third] = attempts.map(({ startedAt }) => Date.parse(startedAt));
    expect(second! - first!).toBeGreaterThanOrEqual(50);
    expect(third! - second!).toBeGreaterThanOrEqual(100);
  });

  it('says how long what is kept', async () => {
    expect((await admin.get('/admin/v1/retention')).json).toEqual({
      retentionDays: 30,
      bodyRetentionDays: null,
      exportDirectory: null,
      channels: [],
      days: [],
    });
  });

  it('ends a waiting delivery when told to cancel it, and sends it again when told to retry it', async () => {
    receiver.next(answer(500));
    const notificationId = await publish();
    await becomes(notificationId, 'waiting');
    const cancelled = await admin.post(`${pathOf(notificationId)}/cancel`);
    expect(cancelled.status).toBe(200);
    expect(cancelled.json).toMatchObject({ state: 'cancelled', nextAttemptAt: null });
    expect(cancelled.json.endedAt).not.toBeNull();
    expect((await admin.post(`${pathOf(notificationId)}/cancel`)).json.code).toBe('delivery-ended');
    expect(receiver.notifications).toHaveLength(1);

    expect((await admin.post(`${pathOf(notificationId)}/retry`)).status).toBe(202);
    await becomes(notificationId, 'delivered');
  });

  it('keeps a success that was under way when it was cancelled', async () => {
    let finish = () => {};
    receiver.next((request, response) => {
      finish = () => protectedReceiver(request, response);
    });
    const notificationId = await publish();
    await eventually(() => receiver.notifications.length === 1, 'the call');
    expect((await admin.post(`${pathOf(notificationId)}/cancel`)).json.state).toBe('cancelled');
    finish();
    await becomes(notificationId, 'delivered');
  });

  it('changes nothing of a delivery whose day is on its way out, and says so', async () => {
    const { notificationId, partitions } = await deadOnDay(5);
    const path = pathOf(notificationId);
    const { name } = partitions[1]!;
    await detach(partitions[1]!);
    for (const ask of [() => admin.post(`${path}/retry`), () => admin.post(`${path}/cancel`), () => admin.get(path)]) {
      const { status, headers, json } = await ask();
      expect([status, headers.get('retry-after'), json.code]).toEqual([503, '60', 'day-away']);
    }
    expect(await sql(`SELECT state, generation FROM ${name}`)).toEqual([{ state: 'failed', generation: 1 }]);
    await sql(attachPartition(partitions[1]!));
    expect((await admin.post(`${path}/retry`)).status).toBe(202);
    await becomes(notificationId, 'delivered');
  });

  it('are away, and not missing, in the view and the explanation of a notification whose day is on its way out', async () => {
    const { notificationId, partitions } = await deadOnDay(6);
    const path = `/admin/v1/notifications/${notificationId}`;
    const ask = () =>
      Promise.all(
        [path, `${path}/explanations`, `${path}/explanations?subscription=${subscriptionId}`].map(async (each) => {
          const { status, headers, json } = await admin.get(each);
          return [status, headers.get('retry-after'), json.code];
        }),
      );
    const [there, away] = [
      [200, null, undefined],
      [503, '60', 'day-away'],
    ];
    const [notifications, deliveries, attempts] = partitions;
    await detach(attempts!);
    expect(await ask()).toEqual([there, there, there]);
    await detach(deliveries!);
    expect(await ask()).toEqual([away, away, away]);
    await detach(notifications!);
    expect(await ask()).toEqual([away, away, away]);
    for (const partition of partitions) await sql(attachPartition(partition));
    expect(await ask()).toEqual([there, there, there]);
  });

  it('are shown with a notification whose day is put back while it is looked for', async () => {
    const { notificationId, partitions } = await deadOnDay(7);
    const reader = admin.api.app.get(NotificationReader, { strict: false });
    const find = reader.find.bind(reader);
    const looked = vi.spyOn(reader, 'find').mockImplementationOnce(async (...which) => {
      await detach(partitions[1]!);
      const found = await find(...which);
      await sql(attachPartition(partitions[1]!));
      return found;
    });
    onTestFinished(() => looked.mockRestore());
    const { status, json } = await admin.get(`/admin/v1/notifications/${notificationId}`);
    expect([status, json.deliveries]).toEqual([200, [expect.objectContaining({ state: 'failed' })]]);
  });

  it('answers 404 to whoever changes a delivery that there is not', async () => {
    for (const change of ['retry', 'cancel'])
      expect((await admin.post(`${pathOf(uuidv7())}/${change}`)).status).toBe(404);
  });

  it('refuses to retry a delivery that has arrived, and to cancel one that has ended', async () => {
    const notificationId = await publish();
    await becomes(notificationId, 'delivered');
    const retried = await admin.post(`${pathOf(notificationId)}/retry`);
    expect(retried).toMatchObject({ status: 409, json: { code: 'delivery-delivered' } });
    const cancelled = await admin.post(`${pathOf(notificationId)}/cancel`);
    expect(cancelled).toMatchObject({ status: 409, json: { code: 'delivery-ended' } });
  });

  it('refuses to retry what nobody is there for, and leaves it the dead letter that it was', async () => {
    await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { maxRetries: 0 });
    receiver.next(answer(503));
    const notificationId = await publish();
    const dead = await becomes(notificationId, 'failed');
    const refusal = async () => {
      const { status, json } = await admin.post(`${pathOf(notificationId)}/retry`);
      return [status, json.code];
    };
    const shown = async () => (await admin.get(`/admin/v1/notifications/${notificationId}`)).json.deliveries;
    receiver.next(answer(410));
    await publish();
    const subscription = `/admin/v1/subscriptions/${subscriptionId}`;
    await eventually(async () => (await admin.get(subscription)).json.disabledAt, 'the subscription to be disabled');
    expect(await refusal()).toEqual([409, 'subscription-disabled']);
    expect(await shown()).toMatchObject([{ subscription: 'disabled' }]);
    await admin.api.delete(`/abonnement/${subscriptionId}`);
    expect(await refusal()).toEqual([409, 'subscription-deleted']);
    expect(await shown()).toMatchObject([{ subscription: 'deleted' }]);
    expect((await admin.get(pathOf(notificationId))).json).toEqual(dead);
  });

  it('refuses to retry what would only be held again, and sends it when that is over', async () => {
    const subscription = `/admin/v1/subscriptions/${subscriptionId}`;
    await admin.put(`${subscription}/retry-policy`, { backoffFactor: 600 });
    await admin.patch(subscription, { ordering: 'per-object' });
    const refusal = async (notificationId: string) => {
      const { status, json } = await admin.post(`${pathOf(notificationId)}/retry`);
      return [status, json.code];
    };
    receiver.next(answer(500));
    const first = await publish();
    await becomes(first, 'waiting');
    const second = await publish();
    expect(await becomes(second, 'held')).toMatchObject({ heldFor: 'order' });
    expect(await refusal(second)).toEqual([409, 'delivery-in-line']);
    await admin.post(`${subscription}/pause`);
    expect(await refusal(first)).toEqual([409, 'subscription-paused']);
    expect(await becomes(first, 'waiting')).toMatchObject({ generation: 1 });
    // One that has ended is held, and goes when the subscription is resumed.
    await admin.post(`${pathOf(first)}/cancel`);
    expect((await admin.post(`${pathOf(first)}/retry`)).status).toBe(202);
    expect(await becomes(first, 'held')).toMatchObject({ heldFor: expect.stringMatching(/^(paused|order)$/) });
    await admin.post(`${subscription}/resume`);
    await becomes(first, 'delivered');
    await becomes(second, 'delivered');
  });

  it('cancels the unfinished deliveries of a subscription that is deleted', async () => {
    receiver.next(answer(500));
    const notificationId = await publish();
    await becomes(notificationId, 'waiting');
    await admin.api.delete(`/abonnement/${subscriptionId}`);
    await becomes(notificationId, 'cancelled');
    expect((await admin.get(pathOf(notificationId))).json.endedAt).not.toBeNull();
  });

  it('shows a first attempt while its call is open', async () => {
    receiver.next(hang);
    const notificationId = await publish();
    const live = await eventually(async () => (await admin.get(pathOf(notificationId))).json.live, 'the live state');
    expect(live).toMatchObject({ attempt: 1, status: 'sending', lastStatus: null, nextAttemptAt: null });
    expect(Math.abs(Date.parse(live.startedAt!) - Date.now())).toBeLessThan(60_000);
  });

  it.each([
    ['that is unknown', `${randomUUID()}/${randomUUID()}`],
    ['of a notification whose id is none', `0/${randomUUID()}`],
    ['of a subscription whose id is none', `${randomUUID()}/%00`],
  ])('answers 404 for a delivery %s', async (_which, key) => {
    const path = `/admin/v1/deliveries/${key}`;
    expect((await admin.get(path)).status).toBe(404);
    expect((await admin.post(`${path}/retry`)).status).toBe(404);
    expect((await admin.post(`${path}/cancel`)).status).toBe(404);
  });

  describe('of what was published by hand', () => {
    const path = '/admin/v1/notifications';
    const body = (more: object = {}) => ({ ...notificationOn(channel), ...more });

    it('arrive with the text of the answer, as published by the caller', async () => {
      const { status, json } = await admin.post(path, body());
      expect(status).toBe(201);
      expect(json).toMatchObject({ duplicateOf: null, deliveryCount: 1, isTooOld: false });
      await becomes(json.id, 'delivered');
      expect(receiver.notifications.map(({ text }) => text)).toEqual([json.body]);
      expect(JSON.parse(json.body as string)).toMatchObject({ kanaal: channel, kenmerken: { objectType: 'a' } });
      expect((await admin.get(`${path}/${json.id}`)).json).toMatchObject({ publisher: superuser.clientId });
    });

    it('are none where nobody asked for it', async () => {
      await admin.api.delete(`/abonnement/${subscriptionId}`);
      expect((await admin.post(path, body())).json).toMatchObject({ deliveryCount: 0, duplicateOf: null });
    });

    it('are made once under an Idempotency-Key, which is the same one in the Notificaties API', async () => {
      const headers = { 'idempotency-key': randomUUID() };
      const sent = body();
      const first = await admin.post(path, sent, { headers });
      const again = await admin.post(path, sent, { headers });
      expect(again.json).toMatchObject({ id: first.json.id, duplicateOf: null, deliveryCount: null });
      expect([first, again].map((each) => each.headers.get('idempotent-replayed'))).toEqual([null, 'true']);
      const published = await admin.api.post('/notificaties', sent, { headers });
      expect(published.headers.get('notification-id')).toBe(first.json.id);
      const other = await admin.post(path, body({ actie: 'update' }), { headers });
      expect([other.status, other.json.code]).toEqual([422, 'idempotency-key-reused']);
    });

    it('wait for their Deliver-After', async () => {
      const headers = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
      const { json } = await admin.post(path, body(), { headers });
      expect(await becomes(json.id, 'waiting')).toMatchObject({ nextAttemptAt: headers['deliver-after'] });
    });

    it('follow the rules of the channel', async () => {
      const { channels } = (await admin.get('/admin/v1/channels')).json;
      const { id } = (channels as { id: string; name: string }[]).find(({ name }) => name === channel)!;
      await admin.patch(`/admin/v1/channels/${id}`, {
        deduplication: { fields: ['actie'], withinSeconds: 3600 },
        maxAgeSeconds: 3600,
      });
      const first = await admin.post(path, body());
      const duplicate = await admin.post(path, body());
      expect(duplicate.json).toMatchObject({ id: first.json.id, duplicateOf: first.json.id, deliveryCount: null });
      const old = await admin.post(path, body({ actie: 'update', aanmaakdatum: '2025-01-01T10:00:00Z' }));
      expect(old.json).toMatchObject({ deliveryCount: 1, isTooOld: true });
      await becomes(old.json.id, 'expired');
    });

    it('are not made of what the Notificaties API refuses, for the same reasons', async () => {
      const wrong = body({ kanaal: 'nowhere', hoofdObject: 'x', actie: '', kenmerken: { kind: 1 } });
      const [byHand, published] = [await admin.post(path, wrong), await admin.api.post('/notificaties', wrong)];
      expect([byHand.status, published.status]).toEqual([400, 400]);
      expect(byHand.json.invalidParams).toEqual(published.json.invalidParams);
      const token = await admin.api.tokenWith('notificaties.publiceren');
      expect((await admin.post(path, body(), { token })).status).toBe(403);
    });
  });

  it('is not cancelled without a token', async () => {
    const notificationId = await publish();
    expect((await admin.post(`${pathOf(notificationId)}/cancel`, undefined, { token: null })).status).toBe(403);
  });
});
