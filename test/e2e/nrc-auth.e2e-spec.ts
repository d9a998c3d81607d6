import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHmac, randomUUID } from 'node:crypto';
import { ApplicationsService } from '../../src/auth/applications.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api, superuser } from '../support/api.js';
import { Receiver } from '../support/receiver.js';
import { signToken, type TokenOptions } from '../support/tokens.js';

const now = () => Math.floor(Date.now() / 1000);
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token part by part, as no library would make it. */
function handMade(header: unknown, payload: unknown, secret = superuser.secret): string {
  const signed = `${base64(header)}.${base64(payload)}`;
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

describe('a token that is not valid is answered with 403 and a code', () => {
  const token = (options: Partial<TokenOptions> = {}) => signToken({ ...superuser, ...options });
  const header = { typ: 'JWT', alg: 'HS256' };

  it.each<[code: string, why: string, () => string]>([
    ['jwt-decode-error', 'one word', () => 'nonsense'],
    ['jwt-decode-error', 'ten thousand spaces', () => `a${' '.repeat(10_000)}b`],
    ['jwt-decode-error', 'three words', () => 'a.b.c'],
    ['jwt-decode-error', 'a header that is a text', () => handMade('x' as never, {})],
    ['jwt-decode-error', 'a header that is a number', () => handMade(1 as never, {})],
    ['jwt-decode-error', 'a payload that is a list', () => handMade(header, [])],
    ['jwt-decode-error', 'a payload that is a text', () => handMade(header, 'x')],
    [
      'jwt-decode-error',
      'an exp that is no time',
      () => handMade(header, { client_id: superuser.clientId, iat: now(), exp: 'soon' }),
    ],
    ['missing-client-identifier', 'no client_id', () => token({ claims: { client_id: undefined } })],
    ['invalid-client-identifier', 'an unknown client_id', () => token({ clientId: 'nobody' })],
    ['invalid-client-identifier', 'a client_id that is no text', () => handMade(header, { client_id: {}, iat: now() })],
    ['invalid-client-identifier', 'a client_id every object has', () => token({ clientId: 'constructor' })],
    ['jwt-invalidalgorithmerror', 'HS512', () => token({ algorithm: 'HS512' })],
    [
      'jwt-invalidalgorithmerror',
      'none',
      () => `${base64({ alg: 'none' })}.${base64({ client_id: superuser.clientId })}.`,
    ],
    ['invalid-jwt-signature', 'another secret', () => token({ secret: 'guessed' })],
    ['invalid-jwt-signature', 'no signature', () => token().replace(/[^.]+$/, '')],
    [
      'invalid-jwt-signature',
      'claims that were changed',
      () => token().replace(/\.[^.]+\./, `.${base64({ client_id: superuser.clientId })}.`),
    ],
    [
      'jwt-decode-error',
      'a header with crit',
      () => handMade({ ...header, crit: ['exp'] }, { client_id: superuser.clientId, iat: now() }),
    ],
    ['jwt-immaturesignatureerror', 'an nbf ahead', () => token({ claims: { nbf: now() + 60 } })],
    ['jwt-immaturesignatureerror', 'an iat more than a minute ahead', () => token({ claims: { iat: now() + 90 } })],
    ['jwt-expiredsignatureerror', 'an exp that passed', () => token({ claims: { exp: now() - 1 } })],
    ['jwt-missing-iat-claim', 'no iat', () => token({ claims: { iat: undefined } })],
    [
      'jwt-invalidissuedaterror',
      'an iat that is no time',
      () => handMade(header, { client_id: superuser.clientId, iat: 'then' }),
    ],
    ['jwt-expired', 'an iat an hour ago', () => token({ claims: { iat: now() - 3600 } })],
  ])('%s: %s', async (code, _, make) => {
    const { status, json } = await api.get('/kanaal', { token: make() });
    expect([status, json.code]).toEqual([403, code]);
  });

  it('jwt-decode-error: padded parts, and the answer says that they may not be', async () => {
    const padded = token().replaceAll('.', '=.');
    const { status, json } = await api.get('/kanaal', { token: padded });
    expect([status, json.code, json.detail]).toEqual([403, 'jwt-decode-error', expect.stringContaining('without `=`')]);
  });

  it.each([
    ['no header', {}],
    ['an empty header', { authorization: '' }],
    ['another scheme', { authorization: `Basic ${token()}` }],
    ['a scheme without a token', { authorization: 'Bearer ' }],
    ['a token without a scheme', { authorization: token() }],
  ])('permission_denied: %s', async (_, headers) => {
    const { status, json } = await api.get('/kanaal', { token: null, headers: { ...headers } });
    expect([status, json.code]).toEqual([403, 'permission_denied']);
  });
});

describe('a valid token', () => {
  const works = async (token: string) => (await api.get('/kanaal', { token })).status === 200;

  it.each<[string, Record<string, unknown>]>([
    ['with iat as a number with decimals', { iat: now() + 0.5 }],
    ['issued almost a minute ahead', { iat: now() + 50 }],
    ['with exp twelve hours ahead, as one library sets it', { exp: now() + 43_200 }],
    ['with claims of its own', { roles: ['ROLE_ADMIN'], aud: 'elsewhere', sub: 'x' }],
    ['with no more than it needs', { iss: undefined, user_id: undefined, user_representation: undefined }],
  ])('%s', async (_, claims) => {
    expect(await works(signToken({ ...superuser, claims }))).toBe(true);
  });

  it('may have its iat as a text', async () => {
    expect(await works(handMade({ alg: 'HS256' }, { client_id: superuser.clientId, iat: String(now()) }))).toBe(true);
  });

  it('has its clock noted when it was issued in the future', async () => {
    const iat = now() + 45;
    await works(signToken({ ...superuser, claims: { iat } }));
    expect(api.logged).toContainEqual(expect.objectContaining({ event: 'token.issued-in-future', issuedAt: iat }));
  });

  it('may name its scheme in any case', async () => {
    const headers = { authorization: `bearer ${signToken(superuser)}` };
    expect((await api.get('/kanaal', { token: null, headers })).status).toBe(200);
  });

  it('is forgiven a drifting clock by TIME_LEEWAY, and lives as long as JWT_EXPIRY', async () => {
    const lenient = await Api.start({ TIME_LEEWAY: '60', JWT_EXPIRY: '100' });
    try {
      const codeFor = async (claims: object) =>
        (await lenient.get('/kanaal', { token: signToken({ ...superuser, claims: { ...claims } }) })).json.code;
      expect(await codeFor({ exp: now() - 50, nbf: now() + 50, iat: now() - 150 })).toBeUndefined();
      expect(await codeFor({ exp: now() - 70 })).toBe('jwt-expiredsignatureerror');
      expect(await codeFor({ nbf: now() + 70 })).toBe('jwt-immaturesignatureerror');
      expect(await codeFor({ iat: now() - 170 })).toBe('jwt-expired');
    } finally {
      await lenient.close();
    }
  });
});

describe('applications', () => {
  it('are known at once, and a token no longer counts once the secret changed or the application is gone', async () => {
    const applications = api.app.get(ApplicationsService);
    const [clientId, first] = [randomUUID(), randomUUID()];
    const made = await applications.create({
      clientId,
      secret: first,
      label: '',
      scopes: ['notificaties.consumeren'],
      isSuperuser: false,
    });
    const token = signToken({ clientId, secret: first });
    const code = async (used = token) => (await api.get('/kanaal', { token: used })).json.code;
    expect(await code()).toBeUndefined();

    const { secret } = await applications.rotateSecret(made.application.id);
    expect(await code()).toBe('invalid-jwt-signature');
    expect(await code(signToken({ clientId, secret }))).toBeUndefined();

    await applications.remove(made.application.id);
    expect(await code(signToken({ clientId, secret }))).toBe('invalid-client-identifier');
  });

  it('that another process has just made are found', async () => {
    const id = randomUUID();
    const { dataSource } = api.app.get(Postgres);
    // As another process would, in one transaction: this one reads what is new by its version, and might read between
    // the two.
    await dataSource.transaction(async (manager) => {
      await manager.query('UPDATE catalogue SET version = version + 1');
      await manager.query(
        `INSERT INTO application (id, client_id, label, secret, scopes, is_superuser, version)
         SELECT $1, $2, '', 'other', '{notificaties.consumeren}', false, version FROM catalogue`,
        [id, id],
      );
    });
    expect((await api.get('/kanaal', { token: signToken({ clientId: id, secret: 'other' }) })).status).toBe(200);
  });

  it('with an empty secret are unknown', async () => {
    const clientId = randomUUID();
    await api.app
      .get(ApplicationsService)
      .create({ clientId, label: '', scopes: ['notificaties.consumeren'], isSuperuser: false, secret: '' });
    const header = base64({ alg: 'HS256' });
    const token = `${header}.${base64({ client_id: clientId, iat: now() })}.${base64('x')}`;
    expect((await api.get('/kanaal', { token })).json.code).toBe('invalid-client-identifier');
  });
});

describe('scopes', () => {
  const statuses = async (token: string) => {
    const id = randomUUID();
    const calls: [string, string, unknown?][] = [
      ['GET', '/kanaal'],
      ['GET', `/kanaal/${id}`],
      ['POST', '/kanaal', {}],
      ['PUT', `/kanaal/${id}`, {}],
      ['PATCH', `/kanaal/${id}`, {}],
      ['GET', '/abonnement'],
      ['GET', `/abonnement/${id}`],
      ['POST', '/abonnement', {}],
      ['PUT', `/abonnement/${id}`, {}],
      ['PATCH', `/abonnement/${id}`, {}],
      ['DELETE', `/abonnement/${id}`],
      ['POST', '/notificaties', {}],
    ];
    const passed: string[] = [];
    for (const [method, path, body] of calls) {
      const { status } = await api.call(method, path, { body, token });
      if (status !== 403) passed.push(`${method} ${path.replace(id, '{uuid}')}`);
    }
    return passed;
  };

  it('none: nothing', async () => {
    expect(await statuses(await api.tokenWith())).toEqual([]);
  });

  it('notificaties.publiceren: everything about kanalen, reading abonnementen, publishing', async () => {
    expect(await statuses(await api.tokenWith('notificaties.publiceren'))).toEqual([
      'GET /kanaal',
      'GET /kanaal/{uuid}',
      'POST /kanaal',
      'PUT /kanaal/{uuid}',
      'PATCH /kanaal/{uuid}',
      'GET /abonnement',
      'GET /abonnement/{uuid}',
      'POST /notificaties',
    ]);
  });

  it('notificaties.consumeren: reading kanalen, everything about abonnementen', async () => {
    expect(await statuses(await api.tokenWith('notificaties.consumeren'))).toEqual([
      'GET /kanaal',
      'GET /kanaal/{uuid}',
      'GET /abonnement',
      'GET /abonnement/{uuid}',
      'POST /abonnement',
      'PUT /abonnement/{uuid}',
      'PATCH /abonnement/{uuid}',
      'DELETE /abonnement/{uuid}',
    ]);
  });

  it('are asked for before the body is looked at', async () => {
    const token = await api.tokenWith('notificaties.consumeren');
    for (const body of ['{', '[]', '{}']) {
      expect((await api.post('/notificaties', body, { token })).json.code).toBe('permission_denied');
    }
    const headers = { 'content-type': 'text/plain' };
    expect((await api.post('/notificaties', 'x', { token, headers })).json.code).toBe('permission_denied');
  });
});

describe('owners', () => {
  it('only the creator and superusers may change an abonnement; every application with a scope may see it', async () => {
    const [owner, other] = [
      await api.tokenWith('notificaties.consumeren'),
      await api.tokenWith('notificaties.consumeren', 'notificaties.publiceren'),
    ];
    const body = { callbackUrl: receiver.url, auth: 'Bearer x' };
    const { json } = await api.post('/abonnement', body, { token: owner });
    for (const [method, sent] of [
      ['PUT', body],
      ['PATCH', {}],
      ['DELETE', undefined],
    ] as const) {
      const refused = await api.call(method, json.url, { body: sent, token: other });
      expect([refused.status, refused.json.code]).toEqual([403, 'permission_denied']);
    }
    expect((await api.get(json.url, { token: other })).status).toBe(200);
    expect((await api.patch(json.url, {}, { token: owner })).status).toBe(200);
    expect((await api.patch(json.url, {})).status).toBe(200);
    expect((await api.delete(json.url)).status).toBe(204);
  });

  it('stay the same when another application changes the abonnement', async () => {
    const owner = await api.tokenWith('notificaties.consumeren');
    const { json } = await api.post('/abonnement', { callbackUrl: receiver.url, auth: 'x' }, { token: owner });
    expect((await api.patch(json.url, { auth: 'y' })).status).toBe(200);
    expect((await api.delete(json.url, { token: owner })).status).toBe(204);
  });
});
