import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { attachPartition, createPartition, partitionsBetween, type Partition } from '../../src/ledger/partitions.js';
import { NotificationReader } from '../../src/notifications/notification-reader.service.js';
import { AdminApi, type AdminBody } from '../support/admin-api.js';
import { superuser } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { lastPart } from '../support/last-part.js';
import { answer, hang, protectedReceiver, Receiver } from '../support/receiver.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

const url = 'https://api.example.org/resources/1';
const notificationOn = (channel: string) => ({
  kanaal: channel,
  hoofdObject: url,
  resource: 'resource',
  resourceUrl: url,
  actie: 'create',
  // Not now: the server's clock may be a little behind.
  aanmaakdatum: new Date(Date.now() - 1000).toISOString(),
  kenmerken: { object_type: 'a' },
});

type Page = Pick<AdminBody, 'deliveries' | 'nextCursor'>;

describe.each(stacks)('deliveries on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let admin: AdminApi;
  let receiver: Receiver;
  let channel: string;
  let subscriptionId: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    // An empty value counts as not set: the embedded stack has no database server.
    admin = await AdminApi.start({
      DATABASE_URL: '',
      DISPATCH_INTERVAL_MS: '100',
      DATABASE_TIMEOUT: '5', // a replay of everything for a subscription waits for its horizon
      ...prepared.settings,
    });
  });

  afterAll(async () => {
    await admin.close();
    await prepared.release();
  });

  beforeEach(async () => {
    receiver = await Receiver.start();
    channel = `channel-${randomUUID()}`;
    await admin.api.post('/kanaal', { naam: channel, documentatieLink: 'https://docs.example.org/', filters: [] });
    subscriptionId = await subscribe();
  });

  afterEach(async () => {
    await receiver.stop();
  });

  async function subscribe(): Promise<string> {
    const { json } = await admin.api.post('/abonnement', {
      callbackUrl: receiver.url,
      auth: 'Bearer receiver',
      kanalen: [{ naam: channel, filters: {} }],
    });
    return lastPart(json.url);
  }

  async function publish(fields: object = {}): Promise<string> {
    const { status, headers } = await admin.api.post('/notificaties', { ...notificationOn(channel), ...fields });
    expect(status).toBe(201);
    return headers.get('notification-id')!;
  }

  const pathOf = (notificationId: string) => `/admin/v1/deliveries/${notificationId}/${subscriptionId}`;

  const becomes = (notificationId: string, state: string) =>
    eventually(async () => {
      const { json } = await admin.get(pathOf(notificationId));
      return json.state === state ? json : undefined;
    }, `the delivery to be ${state}`);

  const sql = (text: string, values?: unknown[]) =>
    admin.api.app.get(Postgres).dataSource.query<unknown[]>(text, values);

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

  async function list(query: Record<string, string>): Promise<Page> {
    return (await admin.get(`/admin/v1/deliveries?${new URLSearchParams(query).toString()}`)).json;
  }

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
    const [{ body }] = (await admin.api.app
      .get(Postgres)
      .dataSource.query('SELECT body FROM notification WHERE id = $1', [notificationId])) as [{ body: string }];
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

  it('erases the body of a notification when told to, and sends it no more', async () => {
    receiver.next(answer(500, {}, 'it said secret'));
    const notificationId = await publish();
    await becomes(notificationId, 'waiting');
    const asked = await admin.post('/admin/v1/erasures', { notification: notificationId });
    expect([asked.status, asked.json.notification]).toEqual([202, notificationId]);
    const path = `/admin/v1/erasures/${asked.json.id}`;
    const done = () => eventually(async () => (await admin.get(path)).json.state === 'done', 'it to be erased');
    await done();
    expect((await admin.get(path)).json).toMatchObject({ erased: 1, cancelled: 1, unsettled: 0 });
    const shown = await admin.get(pathOf(notificationId));
    expect(shown.json).toMatchObject({ state: 'cancelled', attempts: [{ status: 500, error: 'HTTP 500' }] });
    expect(shown.text).not.toContain('secret');
    const retried = await admin.post(`${pathOf(notificationId)}/retry`);
    expect([retried.status, retried.json.code]).toEqual([409, 'body-erased']);
    expect(receiver.notifications).toHaveLength(1);
  });

  it('erases everything about a main object once its count is confirmed', async () => {
    // Of its own: an erasure waits a minute for what may still be in the queue, as other tests leave it.
    const mainObject = `https://api.example.org/resources/${randomUUID()}?${'x'.repeat(20_000)}`;
    const ids = [await publish({ hoofdObject: mainObject }), await publish({ hoofdObject: mainObject })];
    for (const id of ids) await becomes(id, 'delivered');
    const { json } = await admin.post('/admin/v1/erasures', { mainObject });
    const path = `/admin/v1/erasures/${json.id}`;
    const becomesErasure = (state: string) =>
      eventually(async () => {
        const { json: erasure } = await admin.get(path);
        return erasure.state === state ? erasure : undefined;
      }, `the erasure to be ${state}`);
    const { found } = await becomesErasure('counted');
    expect(found).toBe(2);
    expect((await admin.post(`${path}/confirm`, { confirm: 1 })).json.code).toBe('confirm-mismatch');
    expect((await admin.post(`${path}/confirm`, { confirm: found })).status).toBe(202);
    expect(await becomesErasure('done')).toMatchObject({ found, erased: found, searchedTo: null });
    expect((await admin.post(`${path}/confirm`, { confirm: found })).json.code).toBe('erasure-not-counted');
    const later = await admin.post('/admin/v1/erasures', { notification: ids[0] });
    const { erasures, nextCursor } = (await admin.get('/admin/v1/erasures?limit=1')).json;
    expect(erasures).toMatchObject([{ id: later.json.id }]);
    const next = (await admin.get(`/admin/v1/erasures?limit=1&cursor=${nextCursor}`)).json;
    expect(next.erasures).toMatchObject([{ id: json.id }]);
  });

  it('finds a main object as long as a URL allows', async () => {
    const searched = (length: number) => `https://api.example.org/resources/${randomUUID()}?${'x'.repeat(length)}`;
    const mainObject = searched(10_000);
    const id = await publish({ hoofdObject: mainObject });
    const find = (object: string) =>
      `${admin.api.origin}/admin/v1/notifications?mainObject=${encodeURIComponent(object)}`;
    expect(JSON.parse((await admin.api.get(find(mainObject))).text)).toMatchObject({ notifications: [{ id }] });
    expect(await admin.api.get(find(searched(20_000)))).toMatchObject({
      status: 431,
      json: { code: 'headers_too_large' },
    });
  });

  it.each([
    [{}, 400],
    [{ notification: randomUUID(), mainObject: 'https://example.org/1' }, 400],
    [{ notification: randomUUID() }, 404],
    [{ mainObject: '' }, 400],
  ])('does not erase %j', async (body, status) => {
    expect((await admin.post('/admin/v1/erasures', body)).status).toBe(status);
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

  it('lists page after page, by notification, subscription and state', async () => {
    const other = await subscribe();
    receiver.always(hang);
    const published: string[] = [];
    for (let count = 0; count < 5; count++) published.push(await publish());

    const found: Page['deliveries'] = [];
    let cursor: string | null = null;
    do {
      const page: Page = await list({ subscription: subscriptionId, limit: '2', ...(cursor && { cursor }) });
      expect(page.deliveries.length).toBeLessThanOrEqual(2);
      found.push(...page.deliveries);
      cursor = page.nextCursor;
    } while (cursor);
    expect(found.map(({ notificationId }) => notificationId)).toEqual(published.toReversed());

    const ofOne = await list({ notification: published[2]!, state: 'queued' });
    expect(ofOne.deliveries.map((delivery) => delivery.subscriptionId).sort()).toEqual([subscriptionId, other].sort());
    expect((await list({ notification: published[2]!.toUpperCase(), subscription: other })).deliveries).toHaveLength(1);
    expect((await list({ subscription: other, state: 'delivered' })).deliveries).toEqual([]);
    receiver.always(protectedReceiver);
  });

  it('finds deliveries and notifications by what users know, and shows all of a notification', async () => {
    receiver.next(answer(500, {}, 'broken'));
    const { headers } = await admin.api.post('/notificaties', notificationOn(channel), {
      headers: { 'Idempotency-Key': '"4711"' },
    });
    const notificationId = headers.get('notification-id')!;
    await becomes(notificationId, 'waiting');
    await admin.post(`${pathOf(notificationId)}/retry`);
    await becomes(notificationId, 'delivered');
    const from = new Date(Date.now() - 3_600_000).toISOString();
    const searches: Record<string, string>[] = [
      { mainObject: url, channel },
      { resourceUrl: url, channel, action: 'create', acceptedFrom: from },
      { key: '4711', channel },
      { characteristic: 'objectType:a', channel, minAttempts: '2', lastStatus: '204' },
      { publisher: 'superuser', owner: 'superuser', channel, subscription: subscriptionId },
    ];
    for (const search of searches) {
      const query = new URLSearchParams(search).toString();
      const { notifications } = (await admin.get(`/admin/v1/notifications?${query}`)).json;
      expect([search, notifications.map(({ id }) => id)]).toEqual([search, [notificationId]]);
      expect(notifications[0]!.deliveries).toEqual({ delivered: 1 });
      const { deliveries } = await list(search);
      expect([search, deliveries.map((each) => each.notificationId)]).toEqual([search, [notificationId]]);
    }
    for (const query of [
      'unmatched=true',
      'characteristic=objectType:a&characteristic=objectType:b',
      'errorClass=timeout',
    ])
      expect((await admin.get(`/admin/v1/notifications?channel=${channel}&${query}`)).json.notifications).toEqual([]);

    const { json: whole } = await admin.get(`/admin/v1/notifications/${notificationId}`);
    expect(whole).toMatchObject({
      id: notificationId,
      channel,
      key: '4711',
      body: receiver.notifications[0]!.text,
      duplicates: [],
      deliveryCount: { count: 1, isExact: true },
      deliveries: [{ subscriptionId, callbackUrl: receiver.url, attempts: [{ status: 500 }, { status: 204 }] }],
      nextCursor: null,
    });
    const story = whole.story.map(({ event, by, status }) => [event, by ?? status].filter((part) => part !== null));
    expect(story.filter(([event]) => event !== 'queued')).toEqual([
      ['accepted', whole.publisher],
      ['matched'],
      ['sent'],
      ['answered', 500],
      ['retried', whole.publisher],
      ['sent'],
      ['answered', 204],
      ['delivered'],
    ]);
  });

  it('shows the key of a notification that was PUT, and no header that its request did not have', async () => {
    const key = randomUUID();
    const at = new Date(Date.now() + 3_600_000).toISOString();
    const put = await admin.api.put(`/notificaties/${key}`, notificationOn(channel), {
      headers: { 'deliver-after': at },
    });
    expect(put.status).toBe(201);
    const { json: whole } = await admin.get(`/admin/v1/notifications/${put.headers.get('notification-id')}`);
    expect([whole.key, whole.headers]).toEqual([key, { 'Deliver-After': at }]);
  });

  it('finds by a characteristic whose name has colons or backslashes, or is as long as its value', async () => {
    const naam = randomUUID();
    await admin.api.post('/kanaal', { naam });
    const long = 'n'.repeat(2000);
    const kenmerken = {
      'urn:nl:zaak': '1:2',
      [String.raw`a\b`]: '3',
      [String.raw`ends\\`]: '4',
      [long]: 'v'.repeat(1000),
    };
    const { headers } = await admin.api.post('/notificaties', { ...notificationOn(naam), kenmerken });
    const found = async (characteristic: string) => {
      const query = new URLSearchParams({ channel: naam, characteristic }).toString();
      return (await admin.get(`/admin/v1/notifications?${query}`)).json.notifications.map(({ id }) => id);
    };
    for (const characteristic of [
      String.raw`urn\:nl\:zaak:1:2`,
      String.raw`a\b:3`,
      String.raw`a\\b:3`,
      String.raw`ends\\\\:4`,
      `${long}:${'v'.repeat(1000)}`,
    ])
      expect([characteristic, await found(characteristic)]).toEqual([characteristic, [headers.get('notification-id')]]);
    expect(await found('urn:nl:zaak:1:2')).toEqual([]);
  });

  it('finds what matched nobody', async () => {
    await admin.api.delete(`/abonnement/${subscriptionId}`);
    const notificationId = await publish();
    const { json } = await admin.get(`/admin/v1/notifications?channel=${channel}&unmatched=true`);
    expect(json.notifications).toMatchObject([{ id: notificationId, deliveries: {} }]);
    const { json: whole } = await admin.get(`/admin/v1/notifications/${notificationId}`);
    expect(whole).toMatchObject({ deliveries: [], story: [{ event: 'accepted' }, { event: 'unmatched' }] });
    expect((await admin.get(`/admin/v1/notifications/${randomUUID()}`)).status).toBe(404);
  });

  it.each([
    ['limit=0', 'limit', 'min_value'],
    ['limit=501', 'limit', 'max_value'],
    ['limit=ten', 'limit', 'invalid'],
    ['limit=1&limit=2', 'limit', 'invalid'],
    ['cursor=elsewhere', 'cursor', 'invalid'],
    ['state=dead', 'state', 'invalid_choice'],
    ['notification=7', 'notification', 'invalid'],
    ['subscription=%00', 'subscription', 'invalid'],
    ['status=failed', 'nonFieldErrors', 'unknown-parameters'],
    ['characteristic=zone', 'characteristic', 'invalid'],
    ['characteristic=urn%5C:zone', 'characteristic', 'invalid'],
    ['acceptedFrom=yesterday', 'acceptedFrom', 'invalid'],
    ['minAttempts=-1', 'minAttempts', 'invalid'],
    ['lastStatus=99', 'lastStatus', 'min_value'],
    ['errorClass=bad', 'errorClass', 'invalid_choice'],
    ['replay=7', 'replay', 'invalid'],
    ['mainObject=', 'mainObject', 'blank'],
    ['key=%00', 'key', 'invalid'],
  ])('refuses to list %s', async (query, name, code) => {
    for (const list of ['deliveries', 'notifications']) {
      const { status, json } = await admin.get(`/admin/v1/${list}?${query}`);
      expect(status).toBe(400);
      expect(json.invalidParams).toMatchObject([{ name, code }]);
    }
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

  describe('by selection', () => {
    const done = (id: string) =>
      eventually(async () => {
        const { json } = await admin.get(`/admin/v1/replays/${id}`);
        return json.state === 'done' ? json : undefined;
      }, 'the replay to be done');

    it('are sent again to those that missed them, and to nobody else, and can be closed or cancelled', async () => {
      const other = await subscribe();
      await admin.put(`/admin/v1/subscriptions/${subscriptionId}/retry-policy`, { maxRetries: 0 });
      receiver.always(answer(500));
      const missed = [await publish(), await publish()];
      for (const id of missed) await becomes(id, 'failed');
      receiver.always(protectedReceiver);
      const before = receiver.notifications.length;
      const selection = { subscriptions: [subscriptionId] };
      const dry = await admin.post('/admin/v1/replays/dry-run', { selection });
      expect(dry.json).toMatchObject({
        count: 2,
        notifications: 2,
        isComplete: true,
        needsConfirm: false,
        bySubscription: [{ subscriptionId, subscription: 'active', count: 2 }],
        sample: missed.map((notificationId) => ({ notificationId, subscriptionId })),
      });
      const { status, json } = await admin.post('/admin/v1/replays', { selection, confirm: 2, note: 'a bad deploy' });
      expect(status).toBe(201);
      expect(await done(json.id)).toMatchObject({ found: 2, done: 2, count: 2, note: 'a bad deploy', kind: 'replay' });
      for (const id of missed) await becomes(id, 'delivered');
      const ofIt = receiver.notifications.slice(before).filter(({ headers }) => headers['webhook-id'] === missed[0]);
      expect(ofIt.length).toBeGreaterThanOrEqual(1);
      expect((await admin.get('/admin/v1/replays?limit=1')).json).toMatchObject({ replays: [{ id: json.id }] });

      const cancelled = await admin.post('/admin/v1/deliveries/cancel', { selection: { subscriptions: [other] } });
      expect(cancelled.json).toMatchObject({ kind: 'cancel', ratePerSecond: null });
      await done(cancelled.json.id);
      const closed = await admin.post('/admin/v1/deliveries/close', { selection, note: 'they have them' });
      expect(await done(closed.json.id)).toMatchObject({ kind: 'close', done: 0, note: 'they have them' });
      const { deliveries } = await list({ replay: json.id });
      expect(deliveries.map((each) => each.notificationId)).toEqual([...missed].reverse());
    });

    it('reach a new subscription that asks for what it would have got', async () => {
      const published = [await publish(), await publish()];
      for (const id of published) await becomes(id, 'delivered');
      const late = await Receiver.start();
      const { json: created } = await admin.api.post('/abonnement', {
        callbackUrl: late.url,
        auth: 'Bearer receiver',
        kanalen: [{ naam: channel, filters: {} }],
      });
      const everythingFor = lastPart(created.url);
      const { json } = await admin.post('/admin/v1/replays', { selection: { everythingFor } });
      expect(await done(json.id)).toMatchObject({ done: 2 });
      await eventually(() => late.notifications.length === 2, 'both to arrive');
      const arrived = late.notifications.map(({ headers }) => headers['webhook-id']);
      expect(arrived.toSorted()).toEqual(published.toSorted());
      await late.stop();
    });

    it.each([
      ['replays', [1_000_000]],
      ['deliveries/cancel', []], // a higher number confirms it: unfinished deliveries become fewer
      ['deliveries/close', [1_000_000]],
    ])('are sent again or ended once under an Idempotency-Key: POST %s', async (path, wrongCounts) => {
      const headers = { 'idempotency-key': randomUUID() };
      const body = { selection: { subscriptions: [subscriptionId] }, note: 'a bad deploy' };
      const post = (more: object) => admin.post(`/admin/v1/${path}`, { ...body, ...more }, { headers });
      for (const confirm of wrongCounts) expect((await post({ confirm })).status).toBe(409);
      const first = await post({});
      await done(first.json.id);
      const again = await post({});
      expect([first, again].map(({ status, json }) => [status, json.id])).toEqual(Array(2).fill([201, first.json.id]));
      expect([first, again].map((each) => each.headers.get('idempotent-replayed'))).toEqual([null, 'true']);
      expect(again.json).toMatchObject({ state: 'done' });
      const other = await post({ note: 'another' });
      expect([other.status, other.json.code]).toEqual([422, 'idempotency-key-reused']);
    });

    it('need a confirmation where they are all, and a 409 names their number', async () => {
      for (const confirm of [undefined, 1_000_000]) {
        const { status, json } = await admin.post('/admin/v1/replays', { selection: { all: true }, confirm });
        expect([status, json.code]).toEqual([409, 'selection-not-confirmed']);
        expect(json.detail).toMatch(/"confirm": \d+/);
      }
    });

    const id = randomUUID();
    const aGroup = { subscriptionId: id, state: 'failed', errorClass: 'timeout' };
    it.each<[string, object, string, string]>([
      ['replays', {}, 'selection', 'required'],
      ['replays', { selection: {} }, 'selection.all', 'invalid'],
      ['replays', { selection: { states: ['failed'] } }, 'selection.all', 'invalid'],
      ['replays', { selection: { all: true, subscriptions: [id] } }, 'selection.all', 'invalid'],
      ['replays', { selection: { notification: id, all: true } }, 'selection.all', 'invalid'],
      ['replays', { selection: { notification: 'x' } }, 'selection.notification', 'invalid'],
      ['replays', { selection: { subscriptions: [] } }, 'selection.subscriptions', 'empty'],
      ['replays', { selection: { subscriptions: ['x'] } }, 'selection.subscriptions.0', 'invalid'],
      ['replays', { selection: { channels: ['\u0000'] } }, 'selection.channels.0', 'invalid'],
      ['replays', { selection: { acceptedFrom: 'yesterday' } }, 'selection.acceptedFrom', 'invalid'],
      [
        'replays',
        { selection: { acceptedFrom: '2025-01-02T00:00:00Z', acceptedTo: '2025-01-02T00:00:00Z' } },
        'selection.acceptedTo',
        'invalid',
      ],
      ['replays', { selection: { all: true, states: ['waiting'] } }, 'selection.states.0', 'invalid_choice'],
      ['replays', { selection: { all: true, states: ['delivered'] } }, 'selection.states.0', 'invalid'],
      ['replays', { selection: { errorClasses: ['bad luck'] } }, 'selection.errorClasses.0', 'invalid_choice'],
      ['replays', { selection: { deliveries: [] } }, 'selection.deliveries', 'empty'],
      [
        'replays',
        { selection: { groups: [{ subscriptionId: id, state: 'failed' }] } },
        'selection.groups.0.errorClass',
        'required',
      ],
      [
        'replays',
        { selection: { groups: [{ ...aGroup, state: 'waiting' }] } },
        'selection.groups.0.state',
        'invalid_choice',
      ],
      ['replays', { selection: { groups: [aGroup], everythingFor: id } }, 'selection.groups', 'invalid'],
      ['deliveries/cancel', { selection: { groups: [aGroup] } }, 'selection.groups', 'invalid'],
      ['replays', { selection: { everythingFor: id } }, 'selection.everythingFor', 'invalid'],
      ['replays', { selection: { everythingFor: id, subscriptions: [id] } }, 'selection.subscriptions', 'invalid'],
      ['replays', { selection: { subscriptions: [id], since: 1 } }, 'selection.since', 'unknown'],
      ['replays', { selection: { subscriptions: [id] }, ratePerSecond: 0 }, 'ratePerSecond', 'min_value'],
      ['replays', { selection: { subscriptions: [id] }, stopAt: '2025-01-02T00:00:00Z' }, 'stopAt', 'invalid'],
      ['replays/dry-run', { selection: { all: true }, kind: 'delete' }, 'kind', 'invalid_choice'],
      ['deliveries/cancel', { selection: { all: true, states: ['failed'] } }, 'selection.states.0', 'invalid_choice'],
      ['deliveries/cancel', { selection: { everythingFor: id } }, 'selection.everythingFor', 'invalid'],
      ['deliveries/close', { selection: { subscriptions: [id] } }, 'note', 'required'],
    ])('are refused for POST %s %j', async (path, body, name, code) => {
      const { status, json } = await admin.post(`/admin/v1/${path}`, body);
      expect([status, json.invalidParams]).toMatchObject([400, [{ name, code }]]);
    });

    it.each(['kind=x', 'state=x', 'cursor=x', 'limit=0', 'since=1'])('are not listed for ?%s', async (query) => {
      expect((await admin.get(`/admin/v1/replays?${query}`)).status).toBe(400);
    });

    it('answers 404 for one that is unknown', async () => {
      expect((await admin.get(`/admin/v1/replays/${id}`)).status).toBe(404);
      for (const command of ['pause', 'resume', 'cancel'])
        expect((await admin.post(`/admin/v1/replays/${id}/${command}`)).status).toBe(404);
    });
  });

  it('is not cancelled without a token', async () => {
    const notificationId = await publish();
    expect((await admin.post(`${pathOf(notificationId)}/cancel`, undefined, { token: null })).status).toBe(403);
  });
});
