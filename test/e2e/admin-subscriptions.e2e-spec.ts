import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { actingFor } from '../../src/audit/author.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { timeOfId } from '../../src/ledger/partitions.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi, type AdminAnswer } from '../support/admin-api.js';
import { signToken } from '../support/tokens.js';
import { eventually } from '../support/eventually.js';
import { answer, hang, protectedReceiver, Receiver, reset, type Behaviour } from '../support/receiver.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';

const path = '/admin/v1/subscriptions';
const actions = ['enable', 'pause', 'resume', 'drop-held'];

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  admin = await AdminApi.start({ AT_LEAST_ONCE_SENDING_CUSTOMERS: 'superuser,listed' });
});
afterAll(() => admin.close());
// For each test: what was published in the one before may be tried again, and would get the answer that is meant for
// another call.
beforeEach(async () => {
  receiver = await Receiver.start();
});
afterEach(() => receiver.stop());

const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> =>
  admin.api.app.get(Postgres).dataSource.query<R[]>(text, values);

/** For calls that nobody answers. All others have more, so that they are answered in time on a busy machine. */
const brief = { timeoutSeconds: 3 };

interface Subscribed {
  id: string;
  naam: string;
}

async function subscribe(more: object = {}, token?: string): Promise<Subscribed> {
  const naam = randomUUID();
  await admin.api.post('/kanaal', { naam, filters: ['kind'] });
  const kanalen = [{ naam, filters: { kind: 'permit' } }];
  const body = { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver', kanalen, ...more };
  const { json } = await admin.api.post('/abonnement', body, { token });
  return { id: lastPart(json.url), naam };
}

async function publish({ naam }: Pick<Subscribed, 'naam'>, kenmerken = {}): Promise<string> {
  const { headers } = await admin.api.post('/notificaties', notificatie(naam, { kenmerken }));
  return headers.get('notification-id')!;
}

const deliveriesOf = async (id: string) => (await admin.get(`/admin/v1/deliveries?notification=${id}`)).json.deliveries;
const becomes = (id: string, state: string) =>
  eventually(async () => (await deliveriesOf(id))[0]?.state === state, `${id} to be ${state}`);
const receivedOf = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);

const codesOf = ({ json }: AdminAnswer): string[] => json.invalidParams.map(({ name, code }) => `${name} ${code}`);

async function newOwner(clientId: string): Promise<string> {
  const scopes = ['notificaties.consumeren'];
  const { json } = await admin.post('/admin/v1/applications', { clientId, label: clientId, scopes });
  return signToken({ clientId, secret: json.secret });
}

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
    const { status, json } = await admin.patch(`${path}/${id}`, changes);
    expect(status).toBe(400);
    expect(json.invalidParams.map(({ name, code }) => `${name} ${code}`)).toEqual([refusal]);
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
    expect((await admin.post(path, body, { headers })).json).toMatchObject({ id: first.json.id });
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

describe('a change of what it gets, or where that goes', () => {
  it('counts for what is accepted from then on; the callback is called only where it is new', async () => {
    const { id, naam } = await subscribe();
    const before = receiver.requests.length;
    const channels = [
      { channel: naam, filters: { kind: 'other' } },
      { channel: naam, filters: { kind: '*' } },
    ];
    expect((await admin.patch(`${path}/${id}`, { channels, callbackUrl: receiver.url })).json).toMatchObject({
      channels,
    });
    expect(receiver.requests).toHaveLength(before);
    const moved = `${receiver.url}/moved`;
    expect((await admin.patch(`${path}/${id}`, { callbackUrl: moved })).json).toMatchObject({
      callbackUrl: moved,
      channels,
    });
    expect(receiver.requests.slice(before).map(({ path: at }) => at)).toEqual(['/webhook/moved', '/webhook/moved']);
    const published = await publish({ naam });
    await becomes(published, 'delivered');
    expect(receivedOf(published)[0]?.path).toBe('/webhook/moved');
  });

  it('is refused where the new callback does not prove itself, and then nothing is changed', async () => {
    const { id } = await subscribe();
    receiver.always(answer(401));
    const answered = await admin.patch(`${path}/${id}`, { callbackUrl: `${receiver.url}/x`, ratePerSecond: 1 });
    expect([answered.status, codesOf(answered)]).toEqual([400, ['nonFieldErrors invalid-callback-url']]);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ callbackUrl: receiver.url, ratePerSecond: null });
  });

  it('enables a disabled subscription where its callback proves itself', async () => {
    const { id } = await subscribe();
    await admin.api.app.get(SubscriptionsService).disable(id);
    expect((await admin.patch(`${path}/${id}`, { channels: [] })).json.disabledAt).not.toBeNull();
    expect((await admin.patch(`${path}/${id}`, { callbackUrl: receiver.url })).json.disabledAt).toBeNull();
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

  it('give a call the time that the subscription allows, whatever other calls have', async () => {
    // One of its own: the calls that other tests let time out leave theirs room for fewer calls than these two.
    const own = await Receiver.start();
    const callbackUrl = own.url;
    const [patient, hasty] = [await subscribe({ callbackUrl }), await subscribe({ callbackUrl })];
    await admin.patch(`${path}/${patient.id}`, { timeoutSeconds: 20 });
    await admin.patch(`${path}/${hasty.id}`, { timeoutSeconds: 0.2 });
    const held: (() => void)[] = [];
    own.always((_request, response) => void held.push(() => response.writeHead(204).end()));
    const late = await publish(patient);
    await eventually(() => held.length > 0, 'the call that waits');
    const ended = await publish(hasty);
    await becomes(ended, 'waiting');
    expect((await deliveriesOf(ended))[0]).toMatchObject({ lastError: expect.stringContaining('0.2 s') });
    expect((await deliveriesOf(late))[0]).toMatchObject({ failureCount: 0 });
    for (const release of held) release();
    await becomes(late, 'delivered');
    expect((await deliveriesOf(late))[0]).toMatchObject({ attemptCount: 1 });
    await own.stop();
  });
});

describe('a paused subscription', () => {
  const reported = (id: string) =>
    admin.api.logged.filter(({ subscriptionId }) => subscriptionId === id).map(({ event }) => event);

  it('is told to be paused, perhaps, where the process that did it cannot read it then', async () => {
    const { id } = await subscribe();
    let isAway = true;
    const refresh = () => (isAway ? Promise.reject(new Error('no answer')) : Promise.resolve());
    admin.api.app.get(Catalogue).register({ refresh });
    try {
      const { status, json } = await admin.post(`${path}/${id}/pause`);
      expect([status, json.code, json.detail]).toEqual([
        503,
        'service_unavailable',
        expect.stringContaining('may have been done'),
      ]);
    } finally {
      isAway = false;
    }
    expect(admin.api.logged).toContainEqual(
      expect.objectContaining({ event: 'subscription.paused', subscriptionId: id }),
    );
    expect((await admin.get(`${path}/${id}`)).json.pausedAt).not.toBeNull();
  });

  it('is paused and resumed by an operator, as often as they like', async () => {
    const { id } = await subscribe();
    const [paused, again] = [await admin.post(`${path}/${id}/pause`), await admin.post(`${path}/${id}/pause`)];
    expect(paused.json).toMatchObject({ id, pausedAt: expect.any(String) });
    expect(again.json).toEqual(paused.json);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject(paused.json);
    const [resumed, twice] = [await admin.post(`${path}/${id}/resume`), await admin.post(`${path}/${id}/resume`)];
    expect(resumed.json).toEqual({ ...paused.json, pausedAt: null });
    expect(twice.json).toEqual(resumed.json);
    expect(reported(id)).toEqual(['subscription.paused', 'subscription.resumed']);
  });

  it('drops what it holds when an operator says so, and only then', async () => {
    const subscribed = await subscribe();
    const { id } = subscribed;
    expect((await admin.post(`${path}/${id}/drop-held`)).json.code).toBe('subscription-not-paused');
    receiver.always(answer(503));
    const [dropped, kept] = [await publish(subscribed), await publish(subscribed)];
    await Promise.all([becomes(dropped, 'waiting'), becomes(kept, 'waiting')]);
    await admin.post(`${path}/${id}/pause`);
    const hold = (notificationId: string) =>
      sql(`UPDATE delivery SET state = 'held', held_for = 'paused', next_at = NULL WHERE notification_id = $1`, [
        notificationId,
      ]);
    await hold(dropped);
    expect((await admin.get(`${path}/${id}`)).json.held).toMatchObject({ count: 1, byReason: { paused: 1 } });
    const stale = { 'if-match': '"of before"' };
    expect((await admin.post(`${path}/${id}/drop-held`, undefined, { headers: stale })).status).toBe(412);
    const answered = await admin.post(`${path}/${id}/drop-held`);
    expect(answered).toMatchObject({ status: 202, json: { id, held: { isDropping: true } } });
    await becomes(dropped, 'cancelled');
    await eventually(async () => (await admin.post(`${path}/${id}/resume`)).status === 200, 'it to be resumed');
    expect((await deliveriesOf(kept))[0]).toMatchObject({ state: 'waiting' });
  });

  it('is not resumed while it drops', async () => {
    const { id } = await subscribe();
    await admin.post(`${path}/${id}/pause`);
    // A locked row is dropped later.
    await admin.api.app.get(Postgres).dataSource.transaction(async (manager) => {
      const [newest] = await insertDeliveries(sql, {
        notifications: 1,
        subscriptionIds: [id],
        state: 'held',
        columns: { held_for: "'paused'" },
      });
      await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [newest]);
      await admin.post(`${path}/${id}/drop-held`);
      const { status, json } = await admin.post(`${path}/${id}/resume`);
      expect([status, json.code]).toEqual([409, 'subscription-dropping']);
    });
    await eventually(async () => (await admin.post(`${path}/${id}/resume`)).status === 200, 'it to be resumed');
  });
});

describe('the guarantee of a subscription', () => {
  it('is its owner’s unless it has one of its own, set by either API', async () => {
    const [listed, other] = [await newOwner('listed'), await newOwner('not-listed')];
    const guarantees = async ({ id }: Subscribed) => {
      const { json } = await admin.get(`${path}/${id}`);
      return [json.deliveryGuarantee, json.effectiveGuarantee];
    };
    expect(await guarantees(await subscribe({}, listed))).toEqual([null, 'at-least-once']);
    const subscribed = await subscribe({}, other);
    expect(await guarantees(subscribed)).toEqual([null, 'at-most-once']);
    await admin.patch(`${path}/${subscribed.id}`, { deliveryGuarantee: 'at-least-once' });
    expect(await guarantees(subscribed)).toEqual(['at-least-once', 'at-least-once']);
    await admin.patch(`${path}/${subscribed.id}`, {});
    expect(await guarantees(subscribed)).toEqual(['at-least-once', 'at-least-once']);
    await admin.patch(`${path}/${subscribed.id}`, { deliveryGuarantee: null });
    expect(await guarantees(subscribed)).toEqual([null, 'at-most-once']);
    const own = await subscribe({ deliveryGuarantee: 'at-most-once' }, listed);
    expect(await guarantees(own)).toEqual(['at-most-once', 'at-most-once']);
  });

  it('decides how a delivery ends whose call is not answered', async () => {
    const [once, often] = [await subscribe({ deliveryGuarantee: 'at-most-once' }), await subscribe()];
    for (const { id } of [once, often]) await admin.patch(`${path}/${id}`, brief);
    receiver.always(hang);
    const [unknown, waiting] = [await publish(once), await publish(often)];
    await becomes(unknown, 'unknown');
    await becomes(waiting, 'waiting');
    expect(receivedOf(unknown)).toHaveLength(1);
    // An unknown one is counted when the process has heard of the commit.
    await eventually(async () => {
      const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
      expect(text).toMatch(/heraut_deliveries_unknown_total [1-9]/);
      expect(text).toMatch(/heraut_delivery_attempts_total\{guarantee="at-most-once",outcome="unknown"\} [1-9]/);
      return true;
    }, 'both to be counted');
  });

  it('is in an abonnement only where it was set, and a PUT without it leaves it', async () => {
    const { id, naam } = await subscribe();
    const abonnement = async () => (await admin.api.get(`/abonnement/${id}`)).json;
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: 'at-most-once' });
    expect(await abonnement()).toMatchObject({ deliveryGuarantee: 'at-most-once', kanalen: [{ naam }] });
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: null });
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { delivery_guarantee: 'at-least-once' });
    const known = { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver' };
    await admin.api.put(`/abonnement/${id}`, known);
    expect(await abonnement()).toMatchObject({ deliveryGuarantee: 'at-least-once' });
    await admin.api.put(`/abonnement/${id}`, { ...known, deliveryGuarantee: null });
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
  });

  it.each(['exactly-once', '', 1, []])('is refused as %j', async (deliveryGuarantee) => {
    const body = { callbackUrl: receiver.url, auth: 'Bearer x', deliveryGuarantee };
    const { status, json } = await admin.api.post('/abonnement', body);
    expect([status, json.invalidParams.map(({ name }) => name)]).toEqual([400, ['deliveryGuarantee']]);
  });
});

describe('a receiver that says it is gone', () => {
  /** Answered 410 to one notification; another was waiting. */
  async function goneReceiver(): Promise<Subscribed & { refused: string; waiting: string }> {
    const subscribed = await subscribe();
    receiver.always(answer(503));
    const waiting = await publish(subscribed);
    await becomes(waiting, 'waiting');
    receiver.always(answer(410));
    const refused = await publish(subscribed);
    await becomes(refused, 'failed');
    await eventually(async () => (await admin.get(`${path}/${subscribed.id}`)).json.disabledAt, 'it to be disabled');
    receiver.always(protectedReceiver);
    return { ...subscribed, refused, waiting };
  }

  it('gets no more calls, and its waiting deliveries have failed', async () => {
    const gone = await goneReceiver();
    await becomes(gone.waiting, 'failed');
    const published = await publish(gone);
    expect(await deliveriesOf(published)).toEqual([]);
    await admin.post(`/admin/v1/deliveries/${gone.refused}/${gone.id}/retry`);
    await becomes(gone.refused, 'failed');
    expect(receivedOf(gone.refused)).toHaveLength(1);
  });

  it('is disabled once, however many of its calls are answered like that', async () => {
    const subscribed = await subscribe();
    receiver.always(answer(410));
    const ids = await Promise.all(Array.from({ length: 20 }, () => publish(subscribed)));
    await Promise.all(
      ids.map((id) => eventually(async () => (await deliveriesOf(id)).every(({ state }) => state === 'failed'))),
    );
    const reported = () =>
      admin.api.logged.filter(
        ({ event, subscriptionId }) => event === 'subscription.disabled' && subscriptionId === subscribed.id,
      );
    await eventually(() => reported().length > 0, 'it to be disabled'); // after its deliveries have failed
    const { json } = await admin.get(`${path}/${subscribed.id}`);
    expect(json.disabledAt).not.toBeNull();
    expect(reported()).toHaveLength(1);
    receiver.always(protectedReceiver);
  });

  it('is disabled by Heraut itself, also where an operator published by hand what it was called with', async () => {
    const { id, naam } = await subscribe();
    receiver.always(answer(410));
    let end = () => {};
    const caller = { client: 'another', address: '127.0.0.1', requestId: 'another' };
    const otherRequest = actingFor(caller, () => new Promise<void>((resolve) => (end = resolve)));
    expect((await admin.post('/admin/v1/notifications', notificatie(naam))).status).toBe(201);
    const entries = async () =>
      (await admin.api.get(`${admin.api.origin}/admin/v1/audit?subject=subscription/${id}`)).json.entries as object[];
    const disabled = (entry: object) => 'action' in entry && entry.action === 'subscription.disabled';
    await eventually(async () => (await entries()).some(disabled), 'it to be disabled');
    end();
    await otherRequest;
    expect((await entries()).filter(disabled)).toMatchObject([
      {
        by: 'system',
        client: null,
        address: null,
        requestId: null,
        before: { disabledAt: null },
        after: { disabledAt: expect.any(String) },
      },
    ]);
  });

  it('is not the one that has another address by then', async () => {
    const subscribed = await subscribe();
    // The call stays open while the address is changed, also on a machine on which that takes seconds.
    expect((await admin.patch(`${path}/${subscribed.id}`, { timeoutSeconds: 20 })).status).toBe(200);
    let sayGone: (() => void) | undefined;
    receiver.always((request, response) => {
      if (request.path.endsWith('/moved') || request.headers['webhook-id'] === undefined)
        return protectedReceiver(request, response);
      sayGone = () => answer(410)(request, response);
    });
    const before = await publish(subscribed);
    await eventually(() => sayGone !== undefined, 'the call to be open');
    const moved = { callbackUrl: `${receiver.url}/moved` };
    expect((await admin.api.patch(`/abonnement/${subscribed.id}`, moved)).status).toBe(200);
    sayGone!();
    await becomes(before, 'failed');
    await becomes(await publish(subscribed), 'delivered');
    expect((await admin.get(`${path}/${subscribed.id}`)).json.disabledAt).toBeNull();
  });

  it('gets notifications again when an operator enables it, and then the failed deliveries can be retried', async () => {
    const gone = await goneReceiver();
    expect((await admin.post(`${path}/${gone.id}/enable`)).json).toMatchObject({ id: gone.id, disabledAt: null });
    expect((await admin.post(`${path}/${gone.id}/enable`)).status).toBe(200);
    const enabled = admin.api.logged.filter(({ event }) => event === 'subscription.enabled');
    expect(enabled.filter(({ subscriptionId }) => subscriptionId === gone.id)).toHaveLength(1);
    await becomes(await publish(gone), 'delivered');
    await admin.post(`/admin/v1/deliveries/${gone.waiting}/${gone.id}/retry`);
    await becomes(gone.waiting, 'delivered');
  });

  it('gets notifications again when its abonnement is changed and its callback proves itself', async () => {
    const gone = await goneReceiver();
    receiver.always(answer(410));
    expect((await admin.api.patch(`/abonnement/${gone.id}`, {})).status).toBe(400);
    expect((await admin.get(`${path}/${gone.id}`)).json.disabledAt).not.toBeNull();
    receiver.always(protectedReceiver);
    const proofs = receiver.requests.length;
    expect((await admin.api.patch(`/abonnement/${gone.id}`, {})).status).toBe(200);
    expect(receiver.requests.length).toBeGreaterThan(proofs);
    await becomes(await publish(gone), 'delivered');
  });

  it('stays disabled when an operator changes only its guarantee', async () => {
    const gone = await goneReceiver();
    const { json } = await admin.patch(`${path}/${gone.id}`, { deliveryGuarantee: 'at-most-once' });
    expect(json.disabledAt).not.toBeNull();
  });
});
