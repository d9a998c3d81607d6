import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHmac, randomUUID } from 'node:crypto';
import { parse } from 'yaml';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { proofBody } from '../support/abonnements.js';
import { Api, superuser } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { answer, protectedReceiver, Receiver, type ReceivedRequest } from '../support/receiver.js';
import { signToken } from '../support/tokens.js';

/**
 * The behaviour that existing clients and receivers of the Notificaties API rely on; each was seen in one that is in
 * use.
 */

const uuid4 = /\/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const now = () => Math.floor(Date.now() / 1000);

let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

const newChannel = async (...filters: string[]) => {
  const { json } = await api.post('/kanaal', { naam: randomUUID(), filters });
  return json as typeof json & { naam: string };
};

const subscribe = (input: object = {}) =>
  api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer x', kanalen: [], ...input });

const publish = (kanaal: string, more: object = {}) =>
  api.post('/notificaties', {
    kanaal,
    hoofdObject: 'http://example.org/zaken/1',
    resource: 'zaak',
    resourceUrl: 'http://example.org/zaken/1',
    actie: 'create',
    aanmaakdatum: '2025-01-01T10:00:00Z',
    ...more,
  });

const received = (id: string | null): Promise<ReceivedRequest> =>
  eventually(() => receiver.notifications.find(({ headers }) => headers['webhook-id'] === id), 'the notification');

const kenmerkenOf = ({ text }: ReceivedRequest) => (JSON.parse(text) as { kenmerken: object }).kenmerken;

describe('the compatibility checklist', () => {
  it('1. 201 on publish; bare arrays; API-version; absolute URLs under the host the caller used; UUID v4', async () => {
    const kanaal = await newChannel();
    const published = await publish(kanaal.naam);
    expect(published.status).toBe(201);
    expect(published.headers.get('api-version')).toBe('1.0.1');
    const { json } = await subscribe();
    expect(json.url).toMatch(uuid4);
    expect(kanaal.url).toMatch(uuid4);
    for (const path of ['/kanaal', '/abonnement']) {
      expect(Array.isArray(JSON.parse((await api.get(path)).text))).toBe(true);
    }
    const byName = await api.get(`${api.base.replace('127.0.0.1', 'localhost')}/kanaal?naam=${kanaal.naam}`);
    expect(byName.list[0]!.url).toBe(kanaal.url.replace('127.0.0.1', 'localhost'));
  });

  it('2. /api/v1/schema/openapi.yaml?v=3 is an OpenAPI 3.0 document in YAML with the operations clients call by id', async () => {
    const { status, text } = await api.get('/schema/openapi.yaml?v=3', { token: null });
    expect(status).toBe(200);
    const document = parse(text) as { openapi: string; paths: Record<string, Record<string, { operationId: string }>> };
    expect(document.openapi).toMatch(/^3\.0/);
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.entries(item).flatMap(([key, { operationId }]) => (key === 'parameters' ? [] : [operationId])),
    );
    expect(ids).toEqual(
      expect.arrayContaining([
        ...['list', 'read', 'create'].map((verb) => `kanaal_${verb}`),
        ...['list', 'read', 'create', 'update', 'partial_update', 'delete'].map((verb) => `abonnement_${verb}`),
        'notificaties_create',
      ]),
    );
  });

  it('3. GET /kanaal?naam=x gives none or one; PUT on its url works', async () => {
    const kanaal = await newChannel('a');
    expect((await api.get(`/kanaal?naam=${randomUUID()}`)).list).toEqual([]);
    const [found] = (await api.get(`/kanaal?naam=${kanaal.naam}`)).list;
    const put = await api.put(found!.url, {
      naam: kanaal.naam,
      documentatieLink: 'http://example.org/',
      filters: ['a', 'b'],
    });
    expect([put.status, put.json.filters]).toEqual([200, ['a', 'b']]);
  });

  it('4. POST /kanaal with only naam and empty filters, and with documentation that does not resolve', async () => {
    expect((await api.post('/kanaal', { naam: randomUUID(), filters: [] })).status).toBe(201);
    const documentatieLink = 'http://docs-are-not-up-yet.invalid/';
    expect((await api.post('/kanaal', { naam: randomUUID(), documentatieLink })).status).toBe(201);
  });

  it('5. POST /abonnement where the filters of a kanaal are absent or empty', async () => {
    const { naam } = await newChannel('zaaktype');
    const { status, json } = await subscribe({ kanalen: [{ naam }, { naam, filters: {} }] });
    expect(status).toBe(201);
    expect(json.kanalen).toEqual([
      { filters: {}, naam },
      { filters: {}, naam },
    ]);
  });

  it('6. the proof has its fixed body; 206 passes; so does a receiver that answers 401 to all but proofs', async () => {
    receiver.requests.length = 0;
    receiver.always((request, response) => {
      const isProof = (JSON.parse(request.text) as { kanaal: string }).kanaal === 'test';
      const status = isProof && request.headers.authorization !== undefined ? 206 : 401;
      answer(status)(request, response);
    });
    expect((await subscribe()).status).toBe(201);
    receiver.always(protectedReceiver);
    expect(receiver.requests.map(({ text }) => JSON.parse(text) as unknown)).toEqual([proofBody, proofBody]);
  });

  it.each(['Bearer abc.def', 'Token 0123456789', 'c29tZSBiYXNlNjQga2V5Cg=='])(
    '7. auth is sent as it is: %s',
    async (auth) => {
      const { naam } = await newChannel();
      await subscribe({ auth, kanalen: [{ naam }] });
      const { headers } = await publish(naam);
      expect((await received(headers.get('notification-id'))).headers.authorization).toBe(auth);
    },
  );

  it('8. PATCH of kanalen without auth is 200; PATCH of auth keeps kanalen', async () => {
    const { naam } = await newChannel();
    const { json } = await subscribe();
    const kanalen = [{ filters: {}, naam }];
    const patched = await api.patch(json.url, { kanalen });
    expect([patched.status, patched.json.kanalen]).toEqual([200, kanalen]);
    const again = await api.patch(json.url, { auth: 'Bearer y' });
    expect([again.status, again.json.kanalen]).toEqual([200, kanalen]);
  });

  it.each<[string, object, object]>([
    // The headers and claims as two widely used libraries write them.
    ['PyJWT', { alg: 'HS256', typ: 'JWT' }, { iss: 'python', user_id: '', user_representation: '' }],
    ['JJWT', { alg: 'HS256' }, { iss: 'java', user_id: 'valtimo', roles: ['ROLE_USER'] }],
  ])('9. a token of %s with a short secret is accepted', async (_, header, claims) => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const clientId = randomUUID();
    const application = { clientId, label: '', scopes: ['notificaties.consumeren'], isSuperuser: false };
    await api.app.get(ApplicationsService).create({ ...application, secret: 'secret' });
    const signed = `${part(header)}.${part({ ...claims, iat: now(), client_id: clientId })}`;
    const token = `${signed}.${createHmac('sha256', 'secret').update(signed).digest('base64url')}`;
    expect((await api.get('/kanaal', { token })).status).toBe(200);
  });

  it('9. exp in 12 hours does not help a token issued 61 minutes ago; one issued within the next minute is accepted', async () => {
    const old = signToken({ ...superuser, claims: { iat: now() - 61 * 60, exp: now() + 43_200 } });
    const refused = await api.get('/kanaal', { token: old });
    expect([refused.status, refused.json.code]).toEqual([403, 'jwt-expired']);
    const early = signToken({ ...superuser, claims: { iat: now() + 45 } });
    expect((await api.get('/kanaal', { token: early })).status).toBe(200);
  });

  it.each(['object_type', 'objectType'])(
    '10. filter object_type, notification objectType, abonnement %s: delivered as objectType, and no other value is',
    async (spelling) => {
      const { naam } = await newChannel('object_type');
      await subscribe({ kanalen: [{ naam, filters: { [spelling]: 'a' } }] });
      const others = [{ objectType: 'b' }, { object_type: 'b' }];
      const missed = await Promise.all(others.map((kenmerken) => publish(naam, { kenmerken })));
      const hit = await publish(naam, { kenmerken: { objectType: 'a' } });
      expect(kenmerkenOf(await received(hit.headers.get('notification-id')))).toEqual({ objectType: 'a' });
      const snake = await publish(naam, { kenmerken: { object_type: 'a' } });
      expect(kenmerkenOf(await received(snake.headers.get('notification-id')))).toEqual({ objectType: 'a' });
      for (const { headers } of missed) {
        const id = headers.get('notification-id');
        const { json } = await api.get(`${api.origin}/admin/v1/deliveries?notification=${id}`);
        expect(json.deliveries).toEqual([]);
      }
    },
  );

  it('11. kenmerken are always in what is sent', async () => {
    const { naam } = await newChannel('zaaktype');
    await subscribe({ kanalen: [{ naam }] });
    const { headers } = await publish(naam);
    expect(kenmerkenOf(await received(headers.get('notification-id')))).toEqual({});
  });

  it.each([200, 202, 204, 206, 226, 299])('11. %i ends the attempts', async (status) => {
    const { naam } = await newChannel();
    await subscribe({ kanalen: [{ naam }] });
    receiver.next(answer(status));
    const id = (await publish(naam)).headers.get('notification-id') ?? '';
    await received(id);
    const state = await eventually(async () => {
      const { json } = await api.get(`${api.origin}/admin/v1/deliveries?notification=${id}`);
      const [delivery] = json.deliveries as { state: string; attemptCount: number }[];
      return delivery?.state === 'queued' ? undefined : delivery;
    }, 'the outcome');
    expect(state).toMatchObject({ state: 'delivered', attemptCount: 1 });
  });

  it('12. a filter on a name the notification does not have does not keep it away', async () => {
    const { naam } = await newChannel('zaaktype', 'bronorganisatie');
    await subscribe({ kanalen: [{ naam, filters: { zaaktype: 'a' } }] });
    const { headers } = await publish(naam, { kenmerken: { bronorganisatie: '1' } });
    expect(kenmerkenOf(await received(headers.get('notification-id')))).toEqual({ bronorganisatie: '1' });
  });
});

describe('where standard and practice disagree', () => {
  it('POST /notificaties answers 201, not the 200 of the document', async () => {
    expect((await publish((await newChannel()).naam)).status).toBe(201);
  });

  it('a refused notificatie is a ValidatieFout with codes', async () => {
    const { status, json } = await publish('nix');
    expect([status, json.code]).toEqual([400, 'invalid']);
    expect(json.invalidParams).toMatchObject([{ name: 'kanaal', code: 'message_kanaal' }]);
  });

  it('errors are application/problem+json', async () => {
    expect((await api.get('/nothing')).headers.get('content-type')).toBe('application/problem+json');
  });

  it('missing and invalid credentials are 403, not 401', async () => {
    expect((await api.get('/kanaal', { token: null })).status).toBe(403);
    expect((await api.get('/kanaal', { token: 'x' })).status).toBe(403);
  });

  it('kanalen may be left out of an abonnement', async () => {
    const { status, json } = await subscribe({ kanalen: undefined });
    expect([status, json.kanalen]).toEqual([201, []]);
  });

  it('auth is never given back', async () => {
    const auth = `Bearer ${randomUUID()}`;
    const created = await subscribe({ auth });
    const answers = [
      created,
      await api.get(created.json.url),
      await api.get('/abonnement'),
      await api.patch(created.json.url, { kanalen: [] }),
      await api.put(created.json.url, { callbackUrl: receiver.url, auth }),
    ];
    for (const { text } of answers) expect(text).not.toContain(auth);
    expect(JSON.stringify(api.logged)).not.toContain(auth);
  });

  it('kenmerken may be left out of a notificatie', async () => {
    const { status, json } = await publish((await newChannel('zaaktype')).naam);
    expect([status, json.kenmerken]).toEqual([201, {}]);
  });

  it('callbackUrl may have 2048 characters and auth 16 384', async () => {
    const callbackUrl = `${receiver.url}?${'x'.repeat(2048 - receiver.url.length - 1)}`;
    // Longer than the 16 KiB of headers that Node reads by default.
    const auth = `Bearer ${'x'.repeat(10_000)}`;
    const { status, json } = await subscribe({ callbackUrl, auth });
    expect([status, json.callbackUrl]).toEqual([201, callbackUrl]);
  });

  it.each([
    ['unreachable', 'http://127.0.0.1:1/', 'invalid-callback-url'],
    ['without a scheme', '127.0.0.1/', 'invalid'],
  ])('a callbackUrl that is %s is 400, not 500', async (_, callbackUrl, code) => {
    const { status, json } = await subscribe({ callbackUrl });
    expect(status).toBe(400);
    expect(json.invalidParams).toMatchObject([{ name: 'callbackUrl', code }]);
  });

  it('PATCH without kanalen leaves them as they are', async () => {
    const { naam } = await newChannel();
    const { json } = await subscribe({ kanalen: [{ naam }] });
    expect((await api.patch(json.url, {})).json.kanalen).toEqual([{ filters: {}, naam }]);
  });

  it('PATCH without auth proves a new callback with the stored one', async () => {
    const { json } = await subscribe({ auth: 'Token stored' });
    receiver.requests.length = 0;
    expect((await api.patch(json.url, { callbackUrl: `${receiver.url}/new` })).status).toBe(200);
    expect(receiver.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, 'Token stored']);
  });

  it('what is sent has UTC with microseconds, the order as published, and no field that is not the standard', async () => {
    const { naam } = await newChannel();
    await subscribe({ kanalen: [{ naam }] });
    const body = {
      actie: 'create',
      kanaal: naam,
      kenmerken: { z: ' 1 ', a: '2' },
      aanmaakdatum: '2025-01-01T12:00:00.123456+02:00',
      resource: 'zaak',
      unknown: true,
      resourceUrl: 'http://example.org/1',
      hoofdObject: 'http://example.org/1',
    };
    const { headers } = await api.post('/notificaties', body);
    const { unknown: _, ...known } = body;
    expect((await received(headers.get('notification-id'))).text).toBe(
      JSON.stringify({ ...known, kenmerken: { z: '1', a: '2' }, aanmaakdatum: '2025-01-01T10:00:00.123456Z' }),
    );
  });
});
