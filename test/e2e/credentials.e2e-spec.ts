import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import jwt from 'jsonwebtoken';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { AdminApi, type AdminBody } from '../support/admin-api.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { longKey } from '../support/long-key.js';
import { notificatie } from '../support/notificatie.js';
import { protectedReceiver, Receiver } from '../support/receiver.js';
import { secretWatch } from '../support/secret-watch.js';
import { authority, clients, StrictReceiver } from '../support/strict-receiver.js';
import { TokenEndpoint } from '../support/token-endpoint.js';

const path = '/admin/v1/subscriptions';
const keyId = 'test';

let admin: AdminApi;
let receiver: Receiver;
const endpoint = new TokenEndpoint();

beforeAll(async () => {
  [admin, receiver] = await Promise.all([
    AdminApi.start({
      SECRET_KEYS: `${keyId}:${Buffer.alloc(32, 7).toString('base64')}`,
      DISPATCH_INTERVAL_MS: '100',
    }),
    Receiver.start(),
    endpoint.start(),
  ]);
  await admin.put('/admin/v1/retry-policy', { maxRetries: 1, backoffFactor: 0.01, baseFactor: 1 });
});
beforeEach(() => {
  endpoint.reset();
  receiver.always(protectedReceiver);
});
afterAll(async () => {
  endpoint.stop();
  await Promise.all([admin.close(), receiver.stop()]);
});

const oauth2 = () => ({
  kind: 'oauth2',
  tokenUrl: `http://127.0.0.1:${endpoint.port}/token`,
  clientId: 'heraut',
  clientSecret: randomUUID(),
});
const zgw = { kind: 'zgw', clientId: 'heraut', secret: 'secret of the zgw client' };

interface Subscribed {
  id: string;
  naam: string;
}

async function subscribe(more: object = {}): Promise<Subscribed> {
  const naam = randomUUID();
  await admin.api.post('/kanaal', { naam });
  const body = { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver', kanalen: [{ naam }], ...more };
  const { status, json, text } = await admin.api.post('/abonnement', body);
  if (status !== 201) throw new Error(text);
  return { id: lastPart(json.url), naam };
}

const change = (id: string, body: object) => admin.patch(`${path}/${id}/credentials`, body);

async function publish({ naam: kanaal }: Subscribed): Promise<string> {
  const { headers } = await admin.api.post('/notificaties', notificatie(kanaal));
  return headers.get('notification-id')!;
}

/** The one delivery of a notification, once `is` says so. */
const delivery = ({ id }: Subscribed, notification: string, is: (delivery: AdminBody) => boolean) =>
  eventually(async () => {
    const { json } = await admin.get(`/admin/v1/deliveries/${notification}/${id}`);
    return is(json) && json;
  });
const becomes = (subscribed: Subscribed, notification: string, state: string) =>
  delivery(subscribed, notification, (json) => json.state === state);
const received = (notification: string) =>
  receiver.notifications.filter(({ headers }) => headers['webhook-id'] === notification).at(-1)!;

describe('the credentials of a subscription', () => {
  it('are shown without a secret, and stored so that nobody can read them', async () => {
    const subscribed = await subscribe();
    const { certificate, key } = clients[0]!;
    const headers = { 'X-Api-Key': 'the key of the gateway' };
    const { json } = await change(subscribed.id, {
      authorization: {
        ...oauth2(),
        scope: 'write',
        clientAuthentication: 'body',
        tokenTls: { authority: authority.certificate },
      },
      tls: { certificate, key, authority: authority.certificate },
      headers,
    });
    const shown = { subject: 'CN=one', fingerprint: expect.stringMatching(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/) };
    const authorities = [{ ...shown, subject: 'CN=authority of the test', expiresAt: expect.any(String) }];
    expect(json.credentials).toEqual({
      kind: 'oauth2',
      clientId: 'heraut',
      userId: null,
      userRepresentation: null,
      tokenUrl: oauth2().tokenUrl,
      scope: 'write',
      clientAuthentication: 'body',
      tls: { certificate: { ...shown, expiresAt: expect.any(String) }, authority: authorities },
      tokenTls: { certificate: null, authority: authorities },
      headers: ['x-api-key'],
      unreadable: null,
    });
    const read = await admin.get(`${path}/${subscribed.id}`);
    expect(read.json.credentials).toEqual(json.credentials);
    expect(read.text).not.toMatch(/PRIVATE KEY|the key of the gateway/);
    expect((await admin.api.get(`/abonnement/${subscribed.id}`)).json).not.toHaveProperty('credentials');
    expect(secretWatch.leaks()).toEqual([]);
  });

  it('keep each part that is left out, and lose the one that is null', async () => {
    const { id } = await subscribe();
    const shown = async (body: object) => (await change(id, body)).json.credentials;
    const shownAs = { userId: 'jan', userRepresentation: 'Jan de Vries' };
    expect(await shown({ authorization: { ...zgw, ...shownAs }, headers: { a: 'one' } })).toMatchObject(shownAs);
    expect(await shown({ headers: { b: 'two' } })).toMatchObject({ kind: 'zgw', headers: ['b'] });
    expect(await shown({ authorization: { kind: 'verbatim' } })).toMatchObject({ kind: 'verbatim', headers: ['b'] });
    expect(await shown({})).toMatchObject({ headers: ['b'] });
    expect(await shown({ headers: null })).toMatchObject({ kind: 'verbatim', headers: [] });
    // The Notificaties API changes none of them.
    await change(id, { headers: { a: 'one' } });
    await admin.api.patch(`/abonnement/${id}`, { kanalen: [] });
    expect((await admin.get(`${path}/${id}`)).json.credentials).toMatchObject({ headers: ['a'] });
  });

  it('do not become verbatim where there is no value that could stay, by either API, and no callback is called', async () => {
    const { status, json } = await admin.post(path, {
      ownerClientId: 'superuser',
      callbackUrl: receiver.url,
      credentials: { authorization: zgw },
    });
    expect(status).toBe(201);
    const calls = receiver.requests.length;
    const authorization = { kind: 'verbatim' };
    for (const body of [{ authorization }, { authorization, tls: null, headers: null }]) {
      const refused = await change(json.id, body);
      expect([refused.status, refused.json.invalidParams]).toMatchObject([
        400,
        [{ name: 'authorization.auth', code: 'required' }],
      ]);
    }
    const own = await admin.api.patch(`/abonnement/${json.id}`, { credentials: { authorization } });
    expect([own.status, own.json.invalidParams]).toMatchObject([
      400,
      [{ name: 'credentials.authorization.auth', code: 'required' }],
    ]);
    expect(receiver.requests).toHaveLength(calls);
    expect((await admin.get(`${path}/${json.id}`)).json.credentials).toMatchObject({ kind: 'zgw' });
    const blank = await change(json.id, { authorization: { kind: 'verbatim', auth: ' ' } });
    expect([blank.status, blank.json.invalidParams]).toMatchObject([400, [{ name: 'authorization.auth' }]]);
    const given = await change(json.id, {
      authorization: { kind: 'verbatim', auth: 'Bearer secret-of-the-receiver ' },
    });
    expect(given.json.credentials).toMatchObject({ kind: 'verbatim' });
    expect((await change(json.id, { authorization })).status).toBe(200);
  });

  const strangerKey = makeCertificate('stranger').key;
  const ended = makeCertificate('ended', { by: authority, validTo: new Date(Date.now() - 1000) });
  const ahead = makeCertificate('ahead', { by: authority, validFrom: new Date(Date.now() + 3_600_000) });
  const passphrase = { cipher: 'aes-256-cbc', passphrase: 'x', type: 'pkcs8', format: 'pem' } as const;
  const locked = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(passphrase).toString();
  const [one] = clients;

  it.each<[string, object, Record<string, string>]>([
    [
      'no PEM',
      { tls: { certificate: 'x', key: 'y' } },
      { 'tls.certificate': 'invalid-certificate', 'tls.key': 'invalid-key' },
    ],
    ['a key in place of a certificate', { tls: { authority: one!.key } }, { 'tls.authority': 'invalid-certificate' }],
    ['a certificate without its key', { tls: { certificate: one!.certificate } }, { 'tls.key': 'required' }],
    ['a key without its certificate', { tls: { key: one!.key } }, { 'tls.certificate': 'required' }],
    ['the key of another', { tls: { certificate: one!.certificate, key: strangerKey } }, { 'tls.key': 'key-mismatch' }],
    [
      'a key with a passphrase',
      { tls: { certificate: one!.certificate, key: locked } },
      { 'tls.key': 'encrypted-key' },
    ],
    [
      'a key that takes too long to sign, towards the receiver and the token endpoint',
      {
        tls: { certificate: one!.certificate, key: longKey(4112) },
        authorization: {
          kind: 'oauth2',
          clientId: 'a',
          clientSecret: 'b',
          tokenUrl: 'https://host/',
          tokenTls: { certificate: one!.certificate, key: longKey(32_768) },
        },
      },
      { 'tls.key': 'unusable-key', 'authorization.tokenTls.key': 'unusable-key' },
    ],
    [
      'a certificate that has ended',
      { tls: { certificate: ended.certificate, key: ended.key } },
      { 'tls.certificate': 'expired-certificate' },
    ],
    [
      'a certificate that begins in an hour',
      { tls: { certificate: ahead.certificate, key: ahead.key } },
      { 'tls.certificate': 'future-certificate' },
    ],
    [
      'an authority that has ended',
      { tls: { authority: ended.certificate } },
      { 'tls.authority': 'expired-certificate' },
    ],
    [
      'what is wrong for the token endpoint',
      { authorization: { ...zgw, kind: 'oauth2', clientSecret: 's', tokenUrl: 'ftp://x' } },
      { 'authorization.secret': 'unknown', 'authorization.tokenUrl': 'invalid' },
    ],
    [
      'a user in the URL',
      { authorization: { kind: 'oauth2', clientId: 'a', clientSecret: 'b', tokenUrl: 'https://u:p@host/' } },
      { 'authorization.tokenUrl': 'invalid' },
    ],
    [
      'no PEM for the token endpoint',
      {
        authorization: {
          kind: 'oauth2',
          clientId: 'a',
          clientSecret: 'b',
          tokenUrl: 'https://host/',
          tokenTls: { authority: 'x' },
        },
      },
      { 'authorization.tokenTls.authority': 'invalid-certificate' },
    ],
    ['another kind', { authorization: { kind: 'digest' } }, { 'authorization.kind': 'invalid_choice' }],
    [
      'no header names',
      { headers: { 'a b': 'x', 'a:': 'x', '': 'x' } },
      { 'headers.a b': 'invalid-header-name', 'headers.a:': 'invalid-header-name', 'headers.': 'invalid-header-name' },
    ],
    [
      'names that are taken',
      { headers: { Authorization: 'x', 'Webhook-Signature': 'x', 'ce-id': 'x', Host: 'x', 'content-LENGTH': 'x' } },
      {
        'headers.Authorization': 'reserved-header',
        'headers.Webhook-Signature': 'reserved-header',
        'headers.ce-id': 'reserved-header',
        'headers.Host': 'reserved-header',
        'headers.content-LENGTH': 'reserved-header',
      },
    ],
    ['a name twice', { headers: { 'x-a': '1', 'X-A': '2' } }, { 'headers.X-A': 'repeated-header' }],
    ['values that end a header', { headers: { 'x-a': 'a\r\nb: c' } }, { 'headers.x-a': 'invalid-header-value' }],
    [
      'too many headers',
      { headers: Object.fromEntries(Array.from({ length: 51 }, (_, nr) => [`x-${nr}`, ''])) },
      { headers: 'max_length' },
    ],
    [
      'headers that are too long together',
      { headers: Object.fromEntries(Array.from({ length: 50 }, (_, nr) => [`x-${nr}`, 'a'.repeat(8192)])) },
      { headers: 'max_length' },
    ],
    ['unknown fields', { password: 'x' }, { password: 'unknown' }],
  ])('are refused with %s', async (_, body, codes) => {
    const { id } = await subscribe();
    const answers = [await change(id, body), await admin.api.patch(`/abonnement/${id}`, { credentials: body })];
    expect(answers.map(({ status }) => status)).toEqual([400, 400]);
    const [byOperator, bySubscriber] = answers.map(({ json }) =>
      Object.fromEntries(json.invalidParams.map(({ name, code }) => [name, code])),
    );
    expect(byOperator).toEqual(codes);
    expect(bySubscriber).toEqual(
      Object.fromEntries(Object.entries(codes).map(([name, code]) => [`credentials.${name}`, code])),
    );
    expect((await admin.get(`${path}/${id}`)).json.credentials).toMatchObject({
      kind: 'verbatim',
      tls: null,
      headers: [],
    });
  });

  it('are changed by the one whose abonnement it is, and of subscriptions that exist', async () => {
    const { id } = await subscribe();
    const request = { token: await admin.api.tokenWith('notificaties.consumeren') };
    expect((await admin.api.patch(`/abonnement/${id}`, { credentials: { headers: null } }, request)).status).toBe(403);
    expect((await change(randomUUID(), { headers: null })).status).toBe(404);
  });
});

describe('a delivery', () => {
  it('carries auth as it is, with the headers of its subscription', async () => {
    const subscribed = await subscribe();
    await change(subscribed.id, {
      authorization: { kind: 'verbatim', auth: 'Token changed-by-the-operator' },
      headers: { 'X-Api-Key': 'the key of the gateway' },
    });
    const notification = await publish(subscribed);
    await becomes(subscribed, notification, 'delivered');
    expect(received(notification).headers).toMatchObject({
      authorization: 'Token changed-by-the-operator',
      'x-api-key': 'the key of the gateway',
      'content-type': 'application/json',
    });
  });

  it('carries a fresh JWT', async () => {
    const subscribed = await subscribe({ credentials: { authorization: zgw } });
    const notification = await publish(subscribed);
    await becomes(subscribed, notification, 'delivered');
    for (const { headers } of [
      received(notification),
      receiver.requests.findLast((each) => each.path === '/webhook')!,
    ]) {
      const token = headers.authorization!.replace('Bearer ', '');
      const claims = jwt.verify(token, zgw.secret, { algorithms: ['HS256'] }) as jwt.JwtPayload;
      expect(claims).toMatchObject({ iss: 'heraut', client_id: 'heraut', user_id: '', user_representation: '' });
      expect(Math.abs(claims.iat! - Date.now() / 1000)).toBeLessThan(60);
    }
  });

  it('waits without using up an attempt while the token endpoint is in trouble', async () => {
    const subscribed = await subscribe({ credentials: { authorization: oauth2() } });
    // Its token is known already, from the proof; another secret has none.
    endpoint.answer = (response) => response.writeHead(503).end();
    await change(subscribed.id, { authorization: oauth2() });
    const notification = await publish(subscribed);
    const waiting = await delivery(subscribed, notification, ({ lastError }) => lastError !== null);
    expect(waiting).toMatchObject({
      state: 'waiting',
      attemptCount: 0,
      attempts: [],
      lastError: `the token endpoint http://127.0.0.1:${endpoint.port} answers HTTP 503`,
    });
    endpoint.reset();
    const { attempts } = await becomes(subscribed, notification, 'delivered');
    expect(attempts).toHaveLength(1);
    expect(received(notification).headers.authorization).toMatch(/^Bearer token-/);
  });

  it('is not begun where there is no token for the proof, and the subscriber is not told what answers where', async () => {
    endpoint.answer = (response) => response.writeHead(401).end('{"error":"invalid_client"}');
    const reason = 'was not called: no token could be had for it.';
    await expect(subscribe({ credentials: { authorization: oauth2() } })).rejects.toThrow(reason);
    const nobody = { ...oauth2(), tokenUrl: 'http://127.0.0.1:1/token' };
    await expect(subscribe({ credentials: { authorization: nobody } })).rejects.toThrow(reason);
  });

  it('fails with the reason where the token endpoint refuses the client, and arrives when that was repaired', async () => {
    const subscribed = await subscribe();
    endpoint.answer = (response) => response.writeHead(401).end('{"error":"invalid_client"}');
    await change(subscribed.id, { authorization: oauth2() });
    const notification = await publish(subscribed);
    const failed = await becomes(subscribed, notification, 'failed');
    const error = `the token endpoint http://127.0.0.1:${endpoint.port} answers HTTP 401 (invalid_client)`;
    expect(failed.attempts).toMatchObject([
      { error, status: null },
      { error, status: null },
    ]);
    // Its endpoint has no part in that.
    const other = await subscribe();
    await becomes(other, await publish(other), 'delivered');
    endpoint.reset();
    await change(subscribed.id, { authorization: oauth2() });
    await admin.post(`/admin/v1/deliveries/${notification}/${subscribed.id}/retry`);
    await becomes(subscribed, notification, 'delivered');
  });
});

describe('a receiver that demands a client certificate', () => {
  const strict = new StrictReceiver();
  let callbackUrl: string;

  beforeAll(async () => {
    callbackUrl = await strict.start();
  });
  afterAll(() => strict.stop());

  const tlsOf = (index: number) => {
    const { certificate, key } = clients[index]!;
    return { certificate, key, authority: authority.certificate };
  };

  it('is registered with the certificate, which proves that it refuses strangers, and gets deliveries', async () => {
    const subscribed = await subscribe({ callbackUrl, credentials: { tls: tlsOf(0) } });
    await becomes(subscribed, await publish(subscribed), 'delivered');
    expect(strict.seen.map(({ client }) => client)).toEqual(['one', 'one']);
    await change(subscribed.id, { tls: tlsOf(1) });
    await becomes(subscribed, await publish(subscribed), 'delivered');
    expect(strict.seen.at(-1)?.client).toBe('other');
  });

  it('is not registered without', async () => {
    await expect(subscribe({ callbackUrl })).rejects.toThrow('invalid-callback-url');
    await expect(
      subscribe({ callbackUrl, credentials: { tls: { authority: authority.certificate } } }),
    ).rejects.toThrow('invalid-callback-url');
  });
});
