import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type { AdminApi } from '../support/admin-api.js';
import { DeliveryScene, notificationOn, url, type Page } from '../support/delivery-scene.js';
import { eventually } from '../support/eventually.js';
import { answer, hang, protectedReceiver, Receiver } from '../support/receiver.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('deliveries on the $name stack', (stack) => {
  const scene = new DeliveryScene(stack);
  const { subscribe, publish, pathOf, becomes, list } = scene;
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

  it.each([
    [{}, 400],
    [{ notification: randomUUID(), mainObject: 'https://example.org/1' }, 400],
    [{ notification: randomUUID() }, 404],
    [{ mainObject: '' }, 400],
  ])('does not erase %j', async (body, status) => {
    expect((await admin.post('/admin/v1/erasures', body)).status).toBe(status);
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
      const page = async (query: string) => (await admin.get(`/admin/v1/replays?limit=1&${query}`)).json;
      expect(await page('')).toMatchObject({ replays: [{ id: json.id }] });

      const cancelled = await admin.post('/admin/v1/deliveries/cancel', { selection: { subscriptions: [other] } });
      expect(cancelled.json).toMatchObject({ kind: 'cancel', ratePerSecond: null });
      await done(cancelled.json.id);
      const closed = await admin.post('/admin/v1/deliveries/close', { selection, note: 'they have them' });
      expect(await done(closed.json.id)).toMatchObject({ kind: 'close', done: 0, note: 'they have them' });
      const first = await page('');
      expect(first.replays).toMatchObject([{ id: closed.json.id }]);
      expect((await page(`cursor=${first.nextCursor}`)).replays).toMatchObject([{ id: cancelled.json.id }]);
      expect((await page('kind=replay')).replays).toMatchObject([{ id: json.id }]);
      const { deliveries } = await list({ replay: json.id });
      expect(deliveries.map((each) => each.notificationId)).toEqual([...missed].reverse());
    });

    it('reach a new subscription that asks for what it would have got', async () => {
      const published = [await publish(), await publish()];
      for (const id of published) await becomes(id, 'delivered');
      const late = await Receiver.start();
      const everythingFor = await subscribe(late.url);
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
});
