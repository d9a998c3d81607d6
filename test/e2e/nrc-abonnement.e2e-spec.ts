import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { Tally } from '../../src/activity/tally.js';
import type { Application } from '../../src/auth/application.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { KanaalController } from '../../src/channels/kanaal.controller.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AbonnementController } from '../../src/subscriptions/abonnement.controller.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { auth, proofBody, proofsOf, wrong } from '../support/abonnements.js';
import { Api, type ApiAnswer } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { answer, protectedReceiver, Receiver } from '../support/receiver.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { lastPart } from '../support/last-part.js';

let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
  await api.post('/kanaal', { naam: 'zaken', filters: ['zaaktype', 'object_type'] });
  await api.post('/kanaal', { naam: 'vrij' });
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

beforeEach(() => {
  receiver.requests.length = 0;
  receiver.always(protectedReceiver);
});

const post = (input: object = {}) => api.post('/abonnement', { callbackUrl: receiver.url, auth, ...input });

async function create(input: object = {}): Promise<ApiAnswer> {
  const created = await post(input);
  expect(created.status).toBe(201);
  receiver.requests.length = 0;
  return created;
}

const proofs = () => proofsOf(receiver);

describe('creating an abonnement', () => {
  it('answers with all its fields but the secret, and where it is', async () => {
    const kanalen = [
      { filters: { zaaktype: 'a', objectType: 'b' }, naam: 'zaken' },
      { filters: {}, naam: 'vrij' },
    ];
    const { status, json, headers, text } = await post({ kanalen });
    expect(status).toBe(201);
    expect(json).toEqual({ url: json.url, callbackUrl: receiver.url, kanalen });
    expect(Object.keys(json.kanalen[0]!)).toEqual(['filters', 'naam']);
    expect(headers.get('location')).toBe(json.url);
    expect(text).not.toContain(auth);
    const found = await api.get(json.url);
    expect(found.json).toEqual(json);
    expect((await api.get('/abonnement')).list).toContainEqual(json);
  });

  it('gives it a URL that ends in a UUID version 4', async () => {
    expect((await create()).json.url).toMatch(
      /\/abonnement\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  it('needs no kanalen, and accepts the same kanaal and the same callback several times', async () => {
    expect((await create()).json.kanalen).toEqual([]);
    const kanalen = [
      { naam: 'zaken', filters: { zaaktype: 'a' } },
      { naam: 'zaken', filters: { zaaktype: 'b' } },
    ];
    expect((await create({ kanalen })).json.kanalen).toHaveLength(2);
  });

  it('accepts names of filters in either spelling and answers in camelCase', async () => {
    const kanalen = [{ naam: 'zaken', filters: { object_type: 'a', zaaktype: 5 } }];
    expect((await create({ kanalen })).json.kanalen[0]!.filters).toEqual({ objectType: 'a', zaaktype: '5' });
  });

  it('keeps filters with the names of properties that every object has', async () => {
    const filters = JSON.parse('{"__proto__":"a","constructor":"b"}') as object;
    const { json } = await create({ kanalen: [{ naam: 'vrij', filters }] });
    expect(Object.entries(json.kanalen[0]!.filters)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });

  it.each<[string, object, string[]]>([
    ['no callbackUrl', { callbackUrl: undefined }, ['callbackUrl required']],
    ['a callbackUrl without a scheme', { callbackUrl: 'example.org/hook' }, ['callbackUrl invalid']],
    ['a callbackUrl with a password', { callbackUrl: 'http://a:b@example.org/' }, ['callbackUrl invalid']],
    ['a callbackUrl that is too long', { callbackUrl: `http://a/${'x'.repeat(2048)}` }, ['callbackUrl max_length']],
    ['a callbackUrl of too many bytes', { callbackUrl: `http://a/${'é'.repeat(1020)}` }, ['callbackUrl max_length']],
    ['no auth', { auth: undefined }, ['auth required']],
    ['an auth that is null', { auth: null }, ['auth null']],
    ['a blank auth', { auth: '' }, ['auth blank']],
    ['an auth with a line end', { auth: 'Bearer x\r\nX-Evil: 1' }, ['auth invalid']],
    ['an auth no header can hold', { auth: 'Bearer ✓' }, ['auth invalid']],
    ['an auth that is too long', { auth: 'x'.repeat(16_385) }, ['auth max_length']],
    ['kanalen that are null', { kanalen: null }, ['kanalen null']],
    ['kanalen that are no list', { kanalen: {} }, ['kanalen not_a_list']],
    ['a kanaal that is no object', { kanalen: ['zaken'] }, ['kanalen.0.nonFieldErrors invalid']],
    ['a kanaal without a name', { kanalen: [{}] }, ['kanalen.0.naam required']],
    ['filters that are a list', { kanalen: [{ naam: 'zaken', filters: [] }] }, ['kanalen.0.filters not_a_dict']],
    ['filters that are null', { kanalen: [{ naam: 'zaken', filters: null }] }, ['kanalen.0.filters null']],
    ['a value that is null', { kanalen: [{ naam: 'vrij', filters: { a: null } }] }, ['kanalen.0.filters.a null']],
    ['a value that is blank', { kanalen: [{ naam: 'vrij', filters: { a: '' } }] }, ['kanalen.0.filters.a blank']],
    ['a value that is true', { kanalen: [{ naam: 'vrij', filters: { a: true } }] }, ['kanalen.0.filters.a invalid']],
    [
      'a value that is too long',
      { kanalen: [{ naam: 'vrij', filters: { a: 'x'.repeat(1001) } }] },
      ['kanalen.0.filters.a max_length'],
    ],
    [
      'a name that is too long',
      { kanalen: [{ naam: 'vrij', filters: { ['x'.repeat(1001)]: 'a' } }] },
      [`kanalen.0.filters.${'x'.repeat(182)} max_length`],
    ],
    [
      'too many names',
      { kanalen: [{ naam: 'vrij', filters: Object.fromEntries(Array.from({ length: 101 }, (_, nr) => [nr, 'a'])) }] },
      ['kanalen.0.filters max_length'],
    ],
    ['too many kanalen', { kanalen: Array.from({ length: 501 }, () => ({ naam: 'vrij' })) }, ['kanalen max_length']],
    [
      'forty thousand wrong headers',
      {
        credentials: {
          headers: Object.fromEntries(Array.from({ length: 40_000 }, (_, nr) => [`a ${nr}`, 'x'])),
        },
      },
      ['credentials.headers max_length'],
    ],
    ['a wish for CloudEvents', { sendCloudevents: true }, ['sendCloudevents invalid']],
    ['a wish for CloudEvents in snake_case', { send_cloudevents: 'true' }, ['sendCloudevents invalid']],
    ['an unknown kanaal', { kanalen: [{ naam: 'vrij' }, { naam: 'nix' }] }, ['naam kanaal_naam']],
    [
      'an unknown name',
      { kanalen: [{ naam: 'zaken', filters: { zaaktype: 'a', other: 'b' } }] },
      ['filters inconsistent-abonnement-filters'],
    ],
  ])('refuses %s, and leaves the callback alone', async (_, input, fields) => {
    expect(wrong(await post(input))).toEqual({ status: 400, fields });
    expect(receiver.requests).toEqual([]);
  });

  it.each([false, null])('takes a sendCloudevents of %s for what there is here: none', async (sendCloudevents) => {
    const { json } = await create({ sendCloudevents, cloudeventFilters: [] });
    expect(json).toEqual({ url: json.url, callbackUrl: receiver.url, kanalen: [] });
  });

  it('accepts as many kanalen and names as it may have, of the longest that there may be', async () => {
    const longest = Object.fromEntries(Array.from({ length: 100 }, (_, nr) => [`${nr}`.padEnd(1000, 'x'), 'a']));
    const kanalen = [{ naam: 'vrij', filters: longest }, ...Array.from({ length: 499 }, () => ({ naam: 'vrij' }))];
    expect((await create({ kanalen })).status).toBe(201);
  });

  it('goes on with kanalen, and a kanaal with filters, of before there was a limit', async () => {
    const naam = randomUUID();
    const names = Array.from({ length: 300 }, (_, nr) => `name${nr}`);
    const { json: kanaal } = await api.post('/kanaal', { naam });
    const { json: abonnement } = await create({ kanalen: [{ naam }] });
    await api.app.get(Catalogue).change(async (manager, version) => {
      const channels = names.map((name) => ({ channel: naam, filters: { [name]: 'a' } }));
      await manager.query('UPDATE channel SET filters = $1, version = $2 WHERE name = $3', [names, version, naam]);
      await manager.query('UPDATE subscription SET channels = $1, version = $2 WHERE id = $3', [
        JSON.stringify([...channels, ...channels]),
        version,
        lastPart(abonnement.url),
      ]);
    });
    expect((await api.patch(kanaal.url, { documentatieLink: 'https://example.org/' })).json.filters).toEqual(names);
    expect((await api.patch(abonnement.url, { auth: 'Bearer other' })).json.kanalen).toHaveLength(600);
    const urls = { hoofdObject: 'http://example.org/', resourceUrl: 'http://example.org/' };
    const notificatie = { kanaal: naam, ...urls, resource: 'x', actie: 'x', aanmaakdatum: '2025-01-01T10:00:00Z' };
    const ofAnother = await api.post('/notificaties', { ...notificatie, kenmerken: { other: 'a' } });
    expect(ofAnother.json.invalidParams[0]!.reason).toMatch(/\(name0, name1, .*, name49 and 250 more\)\.$/);
    expect((await api.post('/notificaties', { ...notificatie, kenmerken: { name299: 'a' } })).status).toBe(201);
    await eventually(
      () => receiver.notifications.some(({ text }) => text.includes(naam)),
      'the notification to arrive',
    );
  });

  it('says which kanaal is wrong', async () => {
    const { json } = await post({ kanalen: [{ naam: 'vrij' }, { naam: 'nix' }] });
    expect(json.invalidParams[0]!.reason).toContain('kanalen.1 (nix)');
  });

  it('accepts an unknown name together with all the known ones', async () => {
    const kanalen = [{ naam: 'zaken', filters: { zaaktype: '*', object_type: '*', other: 'a' } }];
    expect((await create({ kanalen })).status).toBe(201);
  });
});

describe('changing an abonnement', () => {
  const kanalen = [{ filters: { zaaktype: 'a' }, naam: 'zaken' }];

  it('replaces it by PUT: without kanalen it has none', async () => {
    const { json } = await create({ kanalen });
    const put = await api.put(json.url, { callbackUrl: receiver.url, auth: 'Token t' });
    expect([put.status, put.json]).toEqual([200, { ...json, kanalen: [] }]);
    expect(wrong(await api.put(json.url, {})).fields).toEqual(['callbackUrl required', 'auth required']);
  });

  it('keeps its filters when PUT sends back what GET has shown, also with words of one letter', async () => {
    const filters = ['naam_b_v', 'object_type'];
    await api.post('/kanaal', { naam: 'letters', filters });
    const entries = ['letters', 'vrij'].map((naam) => ({ naam, filters: { naam_b_v: 'a', object_type: 'b' } }));
    const { json } = await create({ kanalen: entries });
    const shown = (await api.get(json.url)).json;
    expect(shown.kanalen[1]!.filters).toEqual({ naam_b_v: 'a', objectType: 'b' });
    const replaced = await api.put(json.url, { ...shown, auth });
    expect([replaced.status, replaced.json]).toEqual([200, shown]);
    const directory = api.app.get(SubscriptionDirectory);
    const matched = (name: string, value: string) => directory.match('vrij', new Map([[name, value]]));
    const id = lastPart(json.url);
    expect(matched('naam_b_v', 'a')).toContain(id);
    expect(matched('naam_b_v', 'other')).not.toContain(id);
  });

  it('keeps auth and callback when PATCH names only kanalen', async () => {
    const { json } = await create();
    expect((await api.patch(json.url, { kanalen })).json).toEqual({ ...json, kanalen });
    expect(receiver.requests).toEqual([]);
    expect((await api.get(json.url)).json).toEqual({ ...json, kanalen });
  });

  it('keeps kanalen when PATCH names only auth, and proves the callback with it', async () => {
    const { json } = await create({ kanalen });
    expect((await api.patch(json.url, { auth: 'Token new' })).json).toEqual(json);
    expect(proofs()).toEqual([['Token new', proofBody]]);
  });

  it('proves a new callback with the stored auth', async () => {
    const { json } = await create();
    const callbackUrl = `${receiver.url}/other`;
    expect((await api.patch(json.url, { callbackUrl })).json).toEqual({ ...json, callbackUrl });
    expect(proofs()).toEqual([
      [undefined, proofBody],
      [auth, proofBody],
    ]);
  });

  it('does not call a callback again that stays as it was', async () => {
    const { json } = await create();
    expect((await api.put(json.url, { callbackUrl: receiver.url, auth, kanalen })).status).toBe(200);
    expect(receiver.requests).toEqual([]);
  });

  it('changes nothing when the callback fails', async () => {
    const { json } = await create({ kanalen });
    receiver.always(answer(500));
    expect((await api.patch(json.url, { auth: 'Token new', kanalen: [] })).status).toBe(400);
    expect((await api.get(json.url)).json).toEqual(json);
  });

  it('changes nothing when CloudEvents are wished for', async () => {
    const { json } = await create({ kanalen });
    expect(wrong(await api.patch(json.url, { sendCloudevents: true, kanalen: [] }))).toEqual({
      status: 400,
      fields: ['sendCloudevents invalid'],
    });
    expect((await api.get(json.url)).json).toEqual(json);
  });

  it('changes nothing when a kanaal is unknown', async () => {
    const { json } = await create({ kanalen });
    expect(wrong(await api.patch(json.url, { kanalen: [{ naam: 'nix' }] })).fields).toEqual(['naam kanaal_naam']);
    expect((await api.get(json.url)).json).toEqual(json);
  });
});

describe('deleting an abonnement', () => {
  it('answers 204 without a body, and it is gone', async () => {
    const { json } = await create();
    const gone = await api.delete(json.url);
    expect([gone.status, gone.text]).toEqual([204, '']);
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : { callbackUrl: receiver.url, auth };
      expect((await api.call(method, json.url, { body })).json.code).toBe('not_found');
    }
    expect((await api.get('/abonnement')).list.map(({ url }) => url)).not.toContain(json.url);
  });

  it('is answered before anything that waits for it is cancelled, however much that is', async () => {
    // Its dispatcher would do that at the same time.
    const alone = await Api.start({ ROLES: 'api' });
    try {
      await alone.post('/kanaal', { naam: 'vrij' });
      const kanalen = [{ naam: 'vrij', filters: {} }];
      const { json } = await alone.post('/abonnement', { callbackUrl: receiver.url, auth, kanalen });
      const id = lastPart(json.url);
      const { dataSource } = alone.app.get(Postgres);
      await insertDeliveries((text, values) => dataSource.query(text, values), {
        notifications: 3000,
        subscriptionIds: [id],
        state: 'waiting',
        columns: { next_at: "now() + interval '1 day'" },
      });
      expect((await alone.delete(json.url)).status).toBe(204);
      const states = 'SELECT state, count(*)::int AS count FROM delivery WHERE subscription_id = $1 GROUP BY state';
      expect(await dataSource.query(states, [id])).toEqual([{ state: 'waiting', count: 3000 }]);
      const noted = 'SELECT state FROM subscription_ending WHERE subscription_id = $1';
      expect(await dataSource.query(noted, [id])).toEqual([{ state: 'cancelled' }]);
    } finally {
      await alone.close();
    }
  });

  it('cancels soon after what waits for it', async () => {
    const { json } = await create();
    const id = lastPart(json.url);
    const { dataSource } = api.app.get(Postgres);
    await insertDeliveries((text, values) => dataSource.query(text, values), {
      notifications: 3,
      subscriptionIds: [id],
      state: 'waiting',
      columns: { next_at: "now() + interval '1 day'" },
    });
    await api.delete(json.url);
    await eventually(async () => {
      const left = "SELECT FROM delivery WHERE subscription_id = $1 AND state = 'waiting'";
      return (await dataSource.query<unknown[]>(left, [id])).length === 0;
    }, 'the deliveries to be cancelled');
  });
});

describe('abonnementen', () => {
  it('are listed in the order of their creation', async () => {
    const urls = [(await create()).json.url, (await create()).json.url, (await create()).json.url];
    await api.patch(urls[0]!, { auth: 'Token changed' });
    const listed = (await api.get('/abonnement')).list.map(({ url }) => url);
    expect(listed.filter((url) => urls.includes(url))).toEqual(urls);
  });

  it('that another process made are found at once', async () => {
    const { dataSource } = api.app.get(Postgres);
    const id = await insertSubscription((...asked) => dataSource.query(...asked), { owner_client_id: 'other' });
    expect((await api.get(`/abonnement/${id}`)).status).toBe(200);
  });

  it.each(['/abonnement?naam=x', '/abonnement?page=1'])('know no query parameters: %s', async (path) => {
    expect(wrong(await api.get(path))).toEqual({ status: 400, fields: ['nonFieldErrors unknown-parameters'] });
  });
});

describe('fetching the notificaties of an abonnement', () => {
  // Of its own: what is published here may still be on its way when another test looks at what it has received.
  let subscriber: Receiver;

  beforeAll(async () => {
    subscriber = await Receiver.start();
  });

  afterAll(() => subscriber.stop());

  beforeEach(() => subscriber.always(protectedReceiver));

  async function subscribed(): Promise<{ url: string; kanaal: string; token: string }> {
    const [kanaal, token] = [randomUUID(), await api.tokenWith('notificaties.consumeren')];
    await api.post('/kanaal', { naam: kanaal });
    const body = { callbackUrl: subscriber.url, auth, kanalen: [{ naam: kanaal }] };
    const { json } = await api.post('/abonnement', body, { token });
    return { url: `${json.url}/notificaties`, kanaal, token };
  }

  async function publish(kanaal: string): Promise<ApiAnswer> {
    const published = await api.post('/notificaties', { ...proofBody, kanaal });
    expect(published.status).toBe(201);
    return published;
  }

  it('answers what was accepted for it, byte for byte, and after its cursor what came since', async () => {
    const { url, kanaal, token } = await subscribed();
    const first = await publish(kanaal);
    const fetched = await api.get(url, { token });
    expect(fetched.text).toContain(`"notificatie":${first.text}}`);
    expect(fetched.json).toMatchObject({ notificaties: [{ id: first.headers.get('notification-id') }] });
    expect(fetched.headers.get('cache-control')).toBe('no-store');
    const waiting = api.get(`${url}?wait=30&cursor=${String(fetched.json['cursor'])}`, { token });
    const second = await publish(kanaal);
    expect((await waiting).json['notificaties']).toMatchObject([{ id: second.headers.get('notification-id') }]);
    const from = new Date(Date.now() + 3_600_000).toISOString();
    expect((await api.get(`${url}?from=${from}`, { token })).json).toMatchObject({ notificaties: [], more: false });
  });

  it('is for its creator alone, and for those who may subscribe', async () => {
    const { url } = await subscribed();
    for (const scope of ['notificaties.consumeren', 'notificaties.publiceren'] as const) {
      const token = await api.tokenWith(scope);
      expect(await api.get(url, { token })).toMatchObject({ status: 403, json: { code: 'permission_denied' } });
      const acknowledged = await api.post(`${url}/acknowledge`, { ids: [randomUUID()] }, { token });
      expect(acknowledged).toMatchObject({ status: 403, json: { code: 'permission_denied' } });
    }
    expect((await api.get(url)).status).toBe(200); // a superuser
  });

  it('refuses a fifth request before the others are answered, and nobody else', async () => {
    const { url, kanaal, token } = await subscribed();
    const another = await subscribed();
    const { json } = await api.get(url, { token });
    const waits = Array.from({ length: 5 }, () =>
      api.get(`${url}?wait=30&cursor=${String(json['cursor'])}`, { token }),
    );
    const refused = await Promise.race(waits);
    expect(refused).toMatchObject({ status: 429, json: { code: 'too-many-fetches' } });
    expect(refused.headers.get('retry-after')).toBe('5');
    expect((await api.get(another.url, { token: another.token })).status).toBe(200);
    expect((await api.get(url)).status).toBe(200); // the four are those of their caller
    await publish(kanaal);
    expect((await Promise.all(waits)).map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 200, 429]);
    expect((await api.get(url, { token })).status).toBe(200);
  });

  it('refuses what it cannot read', async () => {
    const { url } = await subscribed();
    expect(wrong(await api.get(`${url}?cursor=x&limit=501&wait=31&from=yesterday`))).toEqual({
      status: 400,
      fields: ['cursor invalid', 'from invalid', 'limit max_value', 'wait max_value'],
    });
    expect((await api.post(`${url}/acknowledge`, { ids: [] })).status).toBe(400);
  });

  it('ends the deliveries that its subscriber says it has, and counts each once', async () => {
    const { url, kanaal, token } = await subscribed();
    subscriber.always(answer(503));
    const id = (await publish(kanaal)).headers.get('notification-id')!;
    const counted = vi.spyOn(api.app.get(Tally), 'fetched');
    const acknowledge = () => api.post(`${url}/acknowledge`, { ids: [id, randomUUID()] }, { token });
    expect((await acknowledge()).json).toEqual({ ended: [id] });
    expect((await acknowledge()).json).toEqual({ ended: [] });
    expect(counted.mock.calls.map(([, count]) => count)).toEqual([1, 0]);
    counted.mockRestore();
    expect((await api.get(url, { token })).json).toMatchObject({ notificaties: [{ id, isDelivered: true }] });
  });
});

describe('a list', () => {
  it.each([
    ['kanalen', KanaalController],
    ['abonnementen', AbonnementController],
  ])('of %s has the address that its caller used, also where that one leaves before it is made', async (_, of) => {
    await create();
    // Of a host that is not repeated, and so by the address of the socket, which has none any more when it is closed.
    const socket: { localAddress?: string; localPort?: number } = { localAddress: '192.0.2.1', localPort: 8000 };
    const server = { allowedHosts: { has: () => false }, pathPrefix: '' };
    const request = { protocol: 'http', host: 'other.example', socket, server } as unknown as FastifyRequest;
    const raw = Object.assign(new EventEmitter(), { destroyed: false });
    const reply = { raw, type: () => {} } as unknown as FastifyReply;
    const caller = { id: randomUUID() } as Application;
    const listed = api.app.get<KanaalController | AbonnementController>(of).list({}, caller, request, reply);
    delete socket.localAddress;
    delete socket.localPort;
    const all = JSON.parse(((await listed) as Buffer).toString()) as { url: string }[];
    raw.emit('close');
    expect(new Set(all.map(({ url }) => new URL(url).origin))).toEqual(new Set(['http://192.0.2.1:8000']));
  });
});
