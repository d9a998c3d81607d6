import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { timeOfId } from '../../src/ledger/partitions.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { answer, hang, protectedReceiver, reset, type Behaviour, type Receiver } from '../support/receiver.js';
import { brief, codesOf, path, SubscriptionScene } from '../support/subscription-scene.js';

const scene = new SubscriptionScene();
const { sql, subscribe, newOwner, publish, becomes, receivedOf } = scene;
let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  admin = await scene.open();
});
afterAll(() => scene.close());
beforeEach(async () => {
  receiver = await scene.newReceiver();
});
afterEach(() => receiver.stop());

const actions = ['enable', 'pause', 'resume', 'drop-held'];

describe('subscriptions, as an operator sees them', () => {
  it('show everything but the secret of the receiver', async () => {
    const { id, naam } = await subscribe();
    const { json, text } = await admin.get(`${path}/${id}`);
    expect(json).toEqual({
      id,
      ownerClientId: 'superuser',
      callbackUrl: receiver.url,
      channels: [{ channel: naam, filters: { kind: 'permit' } }],
      deliveryGuarantee: null,
      effectiveGuarantee: 'at-least-once',
      timeoutSeconds: null,
      maxConcurrency: null,
      ratePerSecond: null,
      ordering: 'none',
      alertEmail: null,
      credentials: {
        kind: 'verbatim',
        clientId: null,
        userId: null,
        userRepresentation: null,
        tokenUrl: null,
        scope: null,
        clientAuthentication: null,
        tls: null,
        tokenTls: null,
        headers: [],
        unreadable: null,
      },
      disabledAt: null,
      pausedAt: null,
      held: { count: 0, byReason: {}, oldestAt: null, isDropping: false },
    });
    expect(text).not.toContain('secret-of-the-receiver');
    const list = await admin.get(path);
    const { held: _, ...listed } = json;
    expect(list.json.subscriptions).toContainEqual(listed);
    expect(list.text).not.toContain('secret-of-the-receiver');
  });

  it('are gone when they were deleted', async () => {
    const { id } = await subscribe();
    await admin.api.delete(`/abonnement/${id}`);
    expect((await admin.get(`${path}/${id}`)).status).toBe(404);
    expect((await admin.patch(`${path}/${id}`, { deliveryGuarantee: null })).status).toBe(404);
    for (const action of [...actions, 'test']) expect((await admin.post(`${path}/${id}/${action}`)).status).toBe(404);
    expect((await admin.delete(`${path}/${id}`)).status).toBe(404);
    expect((await admin.get(path)).json.subscriptions.map((subscription) => subscription.id)).not.toContain(id);
  });

  it.each<[object, string]>([
    [{ deliveryGuarantee: 'exactly-once' }, 'deliveryGuarantee invalid_choice'],
    [{ deliveryGuarantee: 1 }, 'deliveryGuarantee invalid_choice'],
    [{ callbackUrl: 'ftp://elsewhere/' }, 'callbackUrl invalid'],
    [{ callbackUrl: 'http://user:pass@elsewhere/' }, 'callbackUrl invalid'],
    [{ ownerClientId: 'other' }, 'ownerClientId unknown'],
    [{ channels: [{ channel: 'nowhere' }] }, 'channels.0.channel kanaal_naam'],
    [{ channels: [{ channel: 'nowhere', filters: { a: 1 } }] }, 'channels.0.filters.a invalid'],
    [{ pausedAt: '2026-11-01T10:00:00Z' }, 'pausedAt unknown'],
    [{ timeoutSeconds: 0.05 }, 'timeoutSeconds min_value'],
    [{ timeoutSeconds: 301 }, 'timeoutSeconds max_value'],
    [{ timeoutSeconds: 60 }, 'timeoutSeconds exceeds-lease'],
    [{ timeoutSeconds: '5' }, 'timeoutSeconds invalid'],
    [{ maxConcurrency: 0 }, 'maxConcurrency min_value'],
    [{ maxConcurrency: 10_001 }, 'maxConcurrency max_value'],
    [{ maxConcurrency: 1.5 }, 'maxConcurrency invalid'],
    [{ ratePerSecond: 0 }, 'ratePerSecond min_value'],
    [{ ratePerSecond: -1 }, 'ratePerSecond min_value'],
    [{ ratePerSecond: 100_001 }, 'ratePerSecond max_value'],
    [{ ordering: 'per-channel' }, 'ordering invalid_choice'],
    [{ ordering: null }, 'ordering null'],
  ])('refuse %j', async (changes, refusal) => {
    const { id } = await subscribe();
    const answered = await admin.patch(`${path}/${id}`, changes);
    expect([answered.status, codesOf(answered)]).toEqual([400, [refusal]]);
  });
});

describe('the list of subscriptions', () => {
  const idsOf = (list: { json: { subscriptions: { id: string }[] } }) => list.json.subscriptions.map(({ id }) => id);
  const list = (query: Record<string, string>) => admin.get(`${path}?${new URLSearchParams(query).toString()}`);

  it('is filtered by channel, owner, state and a part of what it shows, and says how many fit', async () => {
    const owner = `owner-${randomUUID()}`;
    const token = await newOwner(owner);
    const [one, other] = [await subscribe({}, token), await subscribe({}, token)];
    await admin.post(`${path}/${other.id}/pause`);
    expect((await list({ owner })).json).toMatchObject({ count: 2, nextCursor: null });
    expect(idsOf(await list({ owner }))).toEqual([one.id, other.id]);
    expect(idsOf(await list({ owner, state: 'paused' }))).toEqual([other.id]);
    expect(idsOf(await list({ owner, state: 'enabled' }))).toEqual([one.id]);
    expect(idsOf(await list({ owner, state: 'disabled' }))).toEqual([]);
    expect(idsOf(await list({ channel: one.naam }))).toEqual([one.id]);
    expect(idsOf(await list({ owner, text: one.naam.slice(2).toUpperCase() }))).toEqual([one.id]);
    expect(idsOf(await list({ text: other.id.slice(0, 20) }))).toEqual([other.id]);
  });

  it('names those that are asked for by their ids, and leaves out what does not exist', async () => {
    const [one, other] = [await subscribe(), await subscribe()];
    await subscribe();
    const ids = [other.id, randomUUID(), one.id.toUpperCase()].join();
    expect(idsOf(await list({ ids }))).toEqual([one.id, other.id]);
    expect(idsOf(await list({ ids, channel: one.naam }))).toEqual([one.id]);
    expect((await list({ ids: `${ids},x` })).status).toBe(400);
  });

  it('names those of any number of selections that one user looks at at once', async () => {
    const { id } = await subscribe();
    const asked = Array.from({ length: 20 }, () => list({ ids: [id, randomUUID()].join() }));
    for (const answer of await Promise.all(asked)) expect([answer.status, idsOf(answer)]).toEqual([200, [id]]);
  });

  it('goes on from page to page, also where the last one of a page was deleted meanwhile', async () => {
    const owner = `owner-${randomUUID()}`;
    const token = await newOwner(owner);
    const made = [];
    for (let nr = 0; nr < 5; nr++) made.push((await subscribe({}, token)).id);
    const first = await list({ owner, limit: '2' });
    expect([idsOf(first), first.json.count]).toEqual([made.slice(0, 2), 5]);
    await admin.delete(`${path}/${made[1]}`);
    const second = await list({ owner, limit: '2', cursor: first.json.nextCursor! });
    expect(idsOf(second)).toEqual(made.slice(2, 4));
    const third = await list({ owner, limit: '2', cursor: second.json.nextCursor! });
    expect([idsOf(third), third.json.nextCursor]).toEqual([[made[4]], null]);
  });

  it.each(['limit=0', 'limit=501', 'cursor=AAAA', 'state=gone', 'text='])('refuses ?%s', async (query) => {
    const { status, json } = await admin.get(`${path}?${query}`);
    expect([status, json.invalidParams.map(({ name }) => name)]).toEqual([400, [query.split('=')[0]]]);
  });
});

describe('how it stands with subscriptions', () => {
  it('is told of those that are asked for: what is held, waits or failed, and of their endpoint', async () => {
    const [held, failed] = [await subscribe(), await subscribe({ callbackUrl: `${receiver.url}/failing` })];
    await admin.post(`${path}/${held.id}/pause`);
    const [first, last] = [await publish(held), await publish(held)];
    await becomes(last, 'held');
    await insertDeliveries(sql, {
      notifications: 3,
      subscriptionIds: [failed.id],
      state: 'failed',
      columns: { last_status: '503', last_error: "'HTTP 503'", ended_at: 'now()' },
    });
    await sql("INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'HTTP 503', 9, now())", [
      `${receiver.url}/failing`,
    ]);
    const { json } = await admin.get(`${path}/situations?ids=${held.id},${failed.id},${randomUUID()}`);
    const situations = json.situations as { subscriptionId: string }[];
    expect(situations).toHaveLength(2);
    expect(situations.find(({ subscriptionId }) => subscriptionId === held.id)).toEqual({
      subscriptionId: held.id,
      held: 2,
      oldestHeldAt: new Date(timeOfId(first)).toISOString(),
      waiting: 0,
      dead: 0,
      lastFailure: null,
      endpoint: null,
    });
    expect(situations.find(({ subscriptionId }) => subscriptionId === failed.id)).toMatchObject({
      held: 0,
      oldestHeldAt: null,
      waiting: 0,
      dead: 3,
      lastFailure: { error: 'HTTP 503', status: 503 },
      endpoint: { address: `${receiver.url}/failing`, reason: 'HTTP 503' },
    });
  });

  it.each(['', 'x', Array.from({ length: 101 }, () => randomUUID()).join()])('is not told of %j', async (ids) => {
    expect((await admin.get(`${path}/situations?ids=${ids}`)).status).toBe(400);
  });
});

describe('a subscription that another process has just made or deleted', () => {
  it('is among those whose situation is told, or is not any more', async () => {
    const ids: string[] = [];
    const told = async () => {
      const { json } = await admin.get(`${path}/situations?ids=${ids.join()}`);
      return (json.situations as { subscriptionId: string }[]).map(({ subscriptionId }) => subscriptionId);
    };
    // Several: one may be known because this process has just had a look of its own.
    for (let nr = 0; nr < 5; nr += 1) {
      ids.push(await insertSubscription(sql));
      expect((await told()).toSorted()).toEqual(ids.toSorted());
    }
    for (const id of ids.splice(1)) {
      await sql(
        `WITH raised AS (UPDATE catalogue SET version = version + 1 RETURNING version)
         UPDATE subscription SET deleted_at = now(), version = raised.version FROM raised WHERE id = $1`,
        [id],
      );
      expect(await told()).not.toContain(id);
    }
  });
});

describe('a subscription that an operator makes', () => {
  const wanted = async (more: object = {}) => {
    const naam = randomUUID();
    await admin.api.post('/kanaal', { naam, filters: ['kind'] });
    const authorization = { kind: 'verbatim', auth: 'Bearer secret-of-the-receiver' };
    return {
      ownerClientId: 'superuser',
      callbackUrl: receiver.url,
      channels: [{ channel: naam, filters: { kind: 'permit' } }],
      credentials: { authorization, headers: { 'x-key': 'a' } },
      ratePerSecond: 50,
      ...more,
    };
  };

  it('belongs to the application that it is made for, and gets what its filters say', async () => {
    const owner = `owner-${randomUUID()}`;
    const token = await newOwner(owner);
    const body = await wanted({ ownerClientId: owner });
    const { status, json, headers } = await admin.post(path, body);
    expect(status).toBe(201);
    expect(json).toMatchObject({
      ownerClientId: owner,
      channels: body.channels,
      ratePerSecond: 50,
      signingSecret: null,
    });
    expect(json.credentials).toMatchObject({ kind: 'verbatim', headers: ['x-key'] });
    expect(headers.get('etag')).toBe((await admin.get(`${path}/${json.id}`)).headers.get('etag'));
    expect((await admin.api.patch(`/abonnement/${json.id}`, {}, { token })).status).toBe(200);
    const kenmerken = { kind: 'permit' };
    const id = await publish({ naam: body.channels[0]!.channel }, kenmerken);
    await becomes(id, 'delivered');
    expect(receivedOf(id)[0]?.headers).toMatchObject({ 'x-key': 'a', authorization: 'Bearer secret-of-the-receiver' });
  });

  it('is made once under an Idempotency-Key, whose repetition calls no callback and shows no secret', async () => {
    const body = await wanted();
    const headers = { 'idempotency-key': randomUUID() };
    receiver.always(answer(204));
    expect((await admin.post(path, body, { headers })).status).toBe(400);
    receiver.always(protectedReceiver);
    const first = await admin.post(path, body, { headers });
    const calls = receiver.requests.length;
    const again = await admin.post(path, body, { headers });
    expect([first.status, again.status]).toEqual([201, 201]);
    const { signingSecret, ...shown } = first.json;
    expect([signingSecret, again.json]).toEqual([null, shown]);
    expect([first, again].map((each) => each.headers.get('idempotent-replayed'))).toEqual([null, 'true']);
    expect(again.headers.get('etag')).toBe(first.headers.get('etag'));
    const other = await admin.post(path, { ...body, ratePerSecond: 51 }, { headers });
    expect([other.status, other.json.code]).toEqual([422, 'idempotency-key-reused']);
    await admin.delete(`${path}/${first.json.id}`);
    const late = await admin.post(path, body, { headers });
    expect([late.status, late.json.code]).toEqual([409, 'deleted-meanwhile']);
    expect(late.headers.get('idempotent-replayed')).toBeNull();
    expect(receiver.requests).toHaveLength(calls);
  });

  it('is proved as an abonnement is, with its codes', async () => {
    receiver.always(answer(204));
    expect(codesOf(await admin.post(path, await wanted()))).toEqual(['callbackUrl no-auth-on-callback-url']);
    receiver.always(answer(401));
    expect(codesOf(await admin.post(path, await wanted()))).toEqual(['nonFieldErrors invalid-callback-url']);
  });

  it.each<[object, string[]]>([
    [{ ownerClientId: 'nobody-at-all' }, ['ownerClientId invalid']],
    [{ ownerClientId: undefined }, ['ownerClientId required']],
    [{ callbackUrl: 'nowhere' }, ['callbackUrl invalid']],
    [{ callbackUrl: `http://a/${'x'.repeat(2048)}` }, ['callbackUrl max_length']],
    [{ callbackUrl: `http://a/${'é'.repeat(1020)}` }, ['callbackUrl max_length']],
    [{ channels: [{ channel: 'nowhere' }] }, ['channels.0.channel kanaal_naam']],
    [{ channels: Array.from({ length: 501 }, () => ({})) }, ['channels max_length']],
    [
      { channels: [{ channel: 'x', filters: Object.fromEntries(Array.from({ length: 101 }, (_, nr) => [nr, 1])) }] },
      ['channels.0.filters max_length'],
    ],
    [
      { channels: [{ channel: 'x', filters: { ['x'.repeat(1001)]: 'a' } }] },
      [`channels.0.filters.${'x'.repeat(181)} max_length`],
    ],
    [{ credentials: {} }, ['credentials.authorization required']],
    [{ credentials: { authorization: { kind: 'verbatim' } } }, ['credentials.authorization.auth required']],
    [
      { credentials: { authorization: { kind: 'verbatim', auth: 'x' }, headers: { host: 'x' } } },
      ['credentials.headers.host reserved-header'],
    ],
    [{ timeoutSeconds: 60 }, ['timeoutSeconds exceeds-lease']],
  ])('is refused with %j, and no callback is called', async (more, codes) => {
    const body = await wanted(more);
    const before = receiver.requests.length;
    const answered = await admin.post(path, body);
    expect([answered.status, codesOf(answered)]).toEqual([400, codes]);
    expect(receiver.requests).toHaveLength(before);
  });

  it('is refused with filters that its channel does not know, or two that mean the same', async () => {
    const { channels } = await wanted();
    const { channel } = channels[0]!;
    const refused = (filters: object) =>
      wanted({ channels: [{ channel, filters }] }).then((body) => admin.post(path, body));
    expect(codesOf(await refused({ colour: 'red' }))).toEqual(['channels.0.filters inconsistent-abonnement-filters']);
    expect(codesOf(await refused({ kind: 'a', Kind: 'b' }))).toEqual(['channels.0.filters.Kind unique']);
  });

  it('is deleted by an operator as by its subscriber', async () => {
    const { json } = await admin.post(path, await wanted());
    expect((await admin.delete(`${path}/${json.id}`)).status).toBe(204);
    expect((await admin.api.get(`/abonnement/${json.id}`)).status).toBe(404);
  });
});

describe('a test of a subscription', () => {
  it('shows the answer, and leaves nothing in the ledger', async () => {
    const { id } = await subscribe();
    await admin.post(`${path}/${id}/signing-keys`, {});
    const [before] = await sql<{ n: string }>('SELECT count(*) AS n FROM notification');
    receiver.next(
      answer(
        200,
        { 'content-type': 'text/html', 'set-cookie': 'a=b' },
        '<h1>Sign in, Bearer secret-of-the-receiver</h1>',
      ),
    );
    const { json } = await admin.post(`${path}/${id}/test`);
    expect(json).toMatchObject({
      isSuccess: true,
      status: 200,
      body: '<h1>Sign in, [secret]</h1>',
      error: null,
      errorClass: null,
      wasSent: true,
      isSigned: true,
      timeoutMs: 10_000,
      address: new URL(receiver.url).host,
    });
    expect(json.headers).toMatchObject({ 'content-type': 'text/html' });
    expect(json.headers).not.toHaveProperty('set-cookie');
    const sent = receiver.requests.at(-1)!;
    expect(sent.headers).toMatchObject({
      authorization: 'Bearer secret-of-the-receiver',
      'webhook-id': json.webhookId,
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
    expect(JSON.parse(sent.text)).toMatchObject({ kanaal: 'test', kenmerken: {} });
    expect(await sql<{ n: string }>('SELECT count(*) AS n FROM notification')).toEqual([before]);
  });

  it.each<[string, Behaviour, object]>([
    [
      'an error',
      answer(503, { 'retry-after': '60' }, 'later'),
      { status: 503, errorClass: 'status-5xx', body: 'later' },
    ],
    ['that it is gone', answer(410), { status: 410, errorClass: 'status-4xx' }],
    [
      'nothing in time',
      hang,
      // Of the time that it may take, the question for its authorization may have taken some.
      {
        status: null,
        errorClass: 'timeout',
        error: expect.stringMatching(/^no answer within \d(\.\d+)? s$/),
        wasSent: true,
      },
    ],
    ['by breaking off', reset, { status: null, errorClass: 'connection', wasSent: true }],
  ])(
    'says what came of it where the receiver answers %s, and the subscription stays as it is',
    async (_, behaviour, result) => {
      const { id } = await subscribe();
      if (behaviour === hang) await admin.patch(`${path}/${id}`, brief);
      receiver.next(behaviour);
      expect((await admin.post(`${path}/${id}/test`)).json).toMatchObject({ isSuccess: false, ...result });
      expect((await admin.get(`${path}/${id}`)).json.disabledAt).toBeNull();
      expect((await admin.get('/admin/v1/endpoints')).json.endpoints).not.toContainEqual(
        expect.objectContaining({ address: new URL(receiver.url).origin }),
      );
    },
  );

  it('is sent to a receiver that is disabled or paused, too, and one at a time', async () => {
    const { id } = await subscribe();
    await admin.api.app.get(SubscriptionsService).disable(id);
    await admin.post(`${path}/${id}/pause`);
    // The second is asked for while the first call is open, however slow the machine is.
    expect((await admin.patch(`${path}/${id}`, { timeoutSeconds: 5 })).status).toBe(200);
    let finish: () => void = () => {};
    const before = receiver.requests.length;
    receiver.next((_, response) => (finish = () => response.writeHead(204).end()));
    const first = admin.post(`${path}/${id}/test`);
    await eventually(() => receiver.requests.length > before);
    const { status, json } = await admin.post(`${path}/${id}/test`);
    expect([status, json.code]).toEqual([409, 'test-call-under-way']);
    finish();
    expect((await first).json).toMatchObject({ isSuccess: true, status: 204, isSigned: false });
    expect((await admin.post(`${path}/${id}/test`)).json).toMatchObject({ isSuccess: true });
  });
});

describe('the settings of a subscription', () => {
  const settings = {
    timeoutSeconds: 2.5,
    maxConcurrency: 3,
    ratePerSecond: 0.5,
    ordering: 'per-object',
    alertEmail: 'a@b.nl',
  };
  const none = { timeoutSeconds: null, maxConcurrency: null, ratePerSecond: null, ordering: 'none' };

  it('are set together, and one that is left out stays as it is', async () => {
    const { id } = await subscribe();
    const before = admin.api.app.get(Catalogue).version;
    const all = { ...settings, deliveryGuarantee: 'at-most-once' };
    expect((await admin.patch(`${path}/${id}`, all)).json).toMatchObject(all);
    expect(admin.api.app.get(Catalogue).version).toBe(before + 1);
    await admin.patch(`${path}/${id}`, {});
    await admin.patch(`${path}/${id}`, { maxConcurrency: 10_000 });
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ ...all, maxConcurrency: 10_000 });
    expect((await admin.patch(`${path}/${id}`, none)).json).toMatchObject({
      ...none,
      deliveryGuarantee: 'at-most-once',
    });
  });

  it('change nothing where one of them is refused', async () => {
    const { id } = await subscribe();
    expect((await admin.patch(`${path}/${id}`, { maxConcurrency: 3, ratePerSecond: 0 })).status).toBe(400);
    expect((await admin.patch(`${path}/${id}`, { maxConcurrency: 3, timeoutSeconds: 60 })).status).toBe(400);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject(none);
  });

  it('are neither shown nor reset by the Notificaties API', async () => {
    const { id, naam } = await subscribe();
    const shown = Object.keys((await admin.api.get(`/abonnement/${id}`)).json);
    await admin.patch(`${path}/${id}`, settings);
    await admin.post(`${path}/${id}/pause`);
    const body = {
      callbackUrl: receiver.url,
      auth: 'Bearer another',
      kanalen: [{ naam, filters: { kind: 'permit' } }],
    };
    for (const answer of [
      await admin.api.put(`/abonnement/${id}`, body),
      await admin.api.patch(`/abonnement/${id}`, { auth: 'Bearer of-the-receiver' }),
      // As any other field that is not of the standard: ignored.
      await admin.api.patch(`/abonnement/${id}`, { ...none, pausedAt: null }),
      await admin.api.get(`/abonnement/${id}`),
    ])
      expect([answer.status, Object.keys(answer.json)]).toEqual([200, shown]);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ ...settings, pausedAt: expect.any(String) });
  });
});
