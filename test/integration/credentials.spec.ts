import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { readSettings } from '../../src/config/settings.js';
import { credentialsOf, noParts, type OAuth2Authorization } from '../../src/credentials/credentials.js';
import { OAuth2Tokens } from '../../src/credentials/oauth2-tokens.js';
import { requestToken } from '../../src/credentials/token-request.node-http.js';
import { ZgwTokens } from '../../src/credentials/zgw-token.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { Outbound, type TlsIdentity } from '../../src/outbound/outbound.service.js';
import { makeCertificate } from '../support/certificates.js';
import { longKey } from '../support/long-key.js';
import { StrictReceiver, authority, clients, strictTls } from '../support/strict-receiver.js';
import { standStill } from '../support/stand-still.js';
import { TokenEndpoint } from '../support/token-endpoint.js';
import { eventually } from '../support/eventually.js';

Logger.overrideLogger(false);

const outbound = new Outbound(readSettings({}));
describe('a receiver that demands a client certificate', () => {
  const receiver = new StrictReceiver();
  let url: string;
  let client: HttpWebhookClient;

  beforeAll(async () => {
    url = await receiver.start();
    client = new HttpWebhookClient(outbound);
  });
  afterEach(() => {
    receiver.seen.length = 0;
  });
  afterAll(async () => {
    await client.close();
    receiver.stop();
  });

  const identity = (tls: TlsIdentity) => credentialsOf({ ...noParts, tls }).tls;
  const of = (index: number) => {
    const { certificate, key } = clients[index]!;
    return identity({ certificate, key, authority: authority.certificate });
  };
  const post = (tls: ReturnType<typeof identity>, mayRepeat = true) =>
    client.post({ url, headers: {}, tls, body: Buffer.from('{}'), timeoutMs: 10_000, mayRepeat });

  it.each([true, false])('gets it (over a kept connection: %s)', async (mayRepeat) => {
    expect(await post(of(0), mayRepeat)).toMatchObject({ kind: 'answered', status: 204 });
    expect(receiver.seen.map((each) => each.client)).toEqual(['one']);
  });

  it('is never called with the certificate of another subscription, though both have connections open', async () => {
    for (let times = 0; times < 4; times++) for (const index of [0, 1]) await post(of(index));
    expect(receiver.seen.map((each) => each.client)).toEqual(Array(4).fill(['one', 'other']).flat());
    const socketsOf = (name: string) =>
      new Set(receiver.seen.filter((each) => each.client === name).map(({ socket }) => socket));
    expect([...socketsOf('one')].filter((socket) => socketsOf('other').has(socket))).toEqual([]);
    // They are kept: four calls do not make four connections.
    expect(socketsOf('one').size).toBeLessThan(4);
  });

  it.each([true, false])('says so to a call without one (over a kept connection: %s)', async (mayRepeat) => {
    const response = await post(identity({ authority: authority.certificate }), mayRepeat);
    expect(response).toMatchObject({
      kind: 'unanswered',
      reason: expect.stringMatching(/certificate required|alert|ECONNRESET|other side closed/i),
      isUntrusted: true,
    });
    expect(receiver.seen).toEqual([]);
  });

  it('is not trusted when it comes from another authority', async () => {
    const { certificate, key } = clients[0]!;
    for (const tls of [
      identity({ certificate, key }),
      identity({ authority: makeCertificate('stranger').certificate }),
    ])
      expect(await post(tls)).toMatchObject({
        kind: 'unanswered',
        wasSent: false,
        reason: expect.stringMatching(/CERT|certificate/),
        isUntrusted: true,
      });
    expect(receiver.seen).toEqual([]);
  });

  it('is reached with a certificate that Node refuses by no call, which says why', async () => {
    const broken = { id: 'broken', expiresAt: null, certificate: 'nonsense', key: 'nonsense' };
    for (const mayRepeat of [true, false])
      expect(await post(broken, mayRepeat)).toMatchObject({
        kind: 'unanswered',
        wasSent: false,
        reason: expect.stringContaining('PEM'),
        isUntrusted: true,
      });
  });
});

describe('a token of OAuth 2.0 client credentials', () => {
  const endpoint = new TokenEndpoint();
  let now = 0;
  let ledgerNow = 0;
  let tokens: OAuth2Tokens;
  let credentials: OAuth2Authorization;

  beforeAll(() => endpoint.start());
  afterAll(() => endpoint.stop());

  function begin(changes: Partial<OAuth2Authorization> = {}): void {
    now = 1_000_000;
    ledgerNow = 9_000_000;
    tokens = new OAuth2Tokens(
      outbound,
      () => now,
      () => ledgerNow,
    );
    endpoint.reset();
    credentials = {
      kind: 'oauth2',
      tokenUrl: `http://127.0.0.1:${endpoint.port}/token`,
      clientId: 'a client:1',
      clientSecret: 'pässword &',
      scope: 'notifications.write',
      clientAuthentication: 'basic',
      tokenTls: null,
      ...changes,
    };
  }
  const get = async (of = credentials) => tokens.authorizationFor(of);

  it('is asked for with a User-Agent: firewalls refuse a call without one', async () => {
    begin();
    await get();
    expect(endpoint.requests[0]?.userAgent).toMatch(/^Heraut\/\d/);
  });

  it('is asked for as RFC 6749 says, in the header or in the body', async () => {
    begin();
    expect(await get()).toBe('Bearer token-1');
    const basic = Buffer.from('a+client%3A1:p%C3%A4ssword+%26').toString('base64');
    expect(endpoint.requests[0]?.authorization).toBe(`Basic ${basic}`);
    expect([...endpoint.requests[0]!.form]).toEqual([
      ['grant_type', 'client_credentials'],
      ['scope', 'notifications.write'],
    ]);
    begin({ clientAuthentication: 'body', scope: null });
    await get();
    expect(endpoint.requests[0]?.authorization).toBeUndefined();
    expect([...endpoint.requests[0]!.form]).toEqual([
      ['grant_type', 'client_credentials'],
      ['client_id', 'a client:1'],
      ['client_secret', 'pässword &'],
    ]);
  });

  it('is fetched once for all that wait for it, and for every subscription with the same credentials', async () => {
    begin();
    const all = await Promise.all(Array.from({ length: 50 }, () => get({ ...credentials })));
    expect(new Set(all)).toEqual(new Set(['Bearer token-1']));
    expect(tokens.authorizationFor(credentials)).toBe('Bearer token-1');
    expect(endpoint.requests).toHaveLength(1);
    expect(await get({ ...credentials, scope: 'other' })).toBe('Bearer token-2');
  });

  it('keeps nobody waiting any more once its endpoint has not answered for a second', async () => {
    begin();
    let answer = () => {};
    endpoint.answer = (response, nr) => {
      answer = () => void response.end(JSON.stringify({ access_token: `token-${nr}`, expires_in: 100 }));
    };
    const first = get();
    await eventually(() => endpoint.requests.length === 1);
    now += 999;
    const second = get();
    now += 1;
    expect(tokens.authorizationFor(credentials)).toMatchObject({ isRefused: false, againInMs: 1000 });
    answer();
    expect(await Promise.all([first, second])).toEqual(['Bearer token-1', 'Bearer token-1']);
    expect(tokens.authorizationFor(credentials)).toBe('Bearer token-1');
    expect(endpoint.requests).toHaveLength(1);
  });

  it('is missing for as long as its endpoint has been in trouble, also while that is asked once more and hangs', async () => {
    begin();
    endpoint.answer = (response) => response.writeHead(503).end('<html>');
    await get();
    endpoint.answer = () => {};
    now += 300_000;
    void get();
    await eventually(() => endpoint.requests.length === 2);
    now += 1000;
    expect(tokens.authorizationFor(credentials)).toMatchObject({ isRefused: false, forMs: 301_000 });
    tokens.close();
  });

  it('is replaced before its end, while it is still used', async () => {
    begin();
    await get();
    now += 74_999;
    expect(await get()).toBe('Bearer token-1');
    expect(endpoint.requests).toHaveLength(1);
    now += 1;
    for (let times = 0; times < 10; times++) expect(tokens.authorizationFor(credentials)).toBe('Bearer token-1');
    await eventually(() => tokens.authorizationFor(credentials) === 'Bearer token-2');
    expect(endpoint.requests).toHaveLength(2);
  });

  it('is as old as the clock says by which it is oldest: the process’s stands still with its machine, and the ledger’s can be set back', async () => {
    begin();
    await get();
    ledgerNow += 90_000;
    expect(await get()).toBe('Bearer token-2');
    ledgerNow -= 3_600_000;
    now += 89_999;
    expect(tokens.authorizationFor(credentials)).toBe('Bearer token-2');
    now += 1;
    expect(await get()).toMatch(/^Bearer token-[34]$/);
  });

  it('is replaced when a receiver refused it after its machine was suspended, however short before it was fetched', async () => {
    begin();
    await get();
    ledgerNow += 30_000;
    tokens.refused(credentials, 'Bearer token-1');
    expect(await get()).toBe('Bearer token-2');
  });

  it('is used until its end while its endpoint is in trouble, which is asked ever more seldom', async () => {
    begin();
    await get();
    endpoint.answer = (response) => response.writeHead(503).end('<html>');
    now += 80_000;
    expect(await get()).toBe('Bearer token-1');
    await eventually(() => endpoint.requests.length === 2);
    now += 9_999;
    expect(await get()).toBe('Bearer token-1');
    now += 1;
    const reason = `the token endpoint http://127.0.0.1:${endpoint.port} answers HTTP 503`;
    // Its answer may be on the way still: until then it is not known what the trouble is.
    await eventually(async () => {
      const got = await get();
      return typeof got === 'object' && got.reason === reason;
    });
    const asked = endpoint.requests.length;
    expect(await get()).toMatchObject({ reason, isRefused: false });
    expect(endpoint.requests).toHaveLength(asked); // not again before its pause is over
    let pauses: number[] = [];
    for (let times = 0; times < 8; times++) {
      const { againInMs } = (await get()) as { againInMs: number };
      pauses = [...pauses, againInMs];
      now += againInMs;
      await get();
    }
    expect(pauses.toSorted((one, other) => one - other)).toEqual(pauses);
    expect(pauses.at(-1)).toBe(60_000);
    endpoint.reset();
    now += 60_000;
    expect(await get()).toMatch(/^Bearer token-/);
  });

  it.each([
    [
      'refuses the client',
      401,
      '{"error":"invalid_client","error_description":"no pässword & here"}',
      true,
      'answers HTTP 401 (invalid_client: no [secret] here)',
    ],
    ['is not there', 404, 'nothing', true, 'answers HTTP 404'],
    ['is asked too often', 429, '{}', false, 'answers HTTP 429'],
    ['redirects', 302, '', false, 'answers HTTP 302'],
    ['answers nonsense', 200, '<html>', false, 'answers without an access token'],
    [
      'gives a token that ends a header',
      200,
      String.raw`{"access_token":"a\r\nb"}`,
      false,
      'answers without an access token',
    ],
    [
      'gives another kind of token',
      200,
      '{"access_token":"a","token_type":"mac"}',
      true,
      'gives a token that is not a bearer token',
    ],
  ])('cannot be had where the endpoint %s', async (_, status, body, isRefused, reason) => {
    begin();
    endpoint.answer = (response) => response.writeHead(status, { location: '/elsewhere' }).end(body);
    const origin = `http://127.0.0.1:${endpoint.port}`;
    expect(await get()).toMatchObject({ reason: `the token endpoint ${origin} ${reason}`, isRefused });
    expect(endpoint.requests).toHaveLength(1);
  });

  it('is in trouble anew when it was not asked for long', async () => {
    begin();
    endpoint.answer = (response) => response.writeHead(503).end();
    await get();
    now += 60_000;
    expect(await get()).toMatchObject({ forMs: 60_000 });
    now += 86_400_000;
    expect(await get()).toMatchObject({ forMs: 0 });
  });

  it.each(['basic', 'body'] as const)(
    'is no secret in any form in which the endpoint repeats it (%s)',
    async (clientAuthentication) => {
      begin({ clientAuthentication });
      endpoint.answer = (response) => {
        const { authorization = '', form } = endpoint.requests.at(-1)!;
        const told = JSON.stringify({ error: 'no', error_description: `${authorization} ${form.toString()}` });
        response.writeHead(401).end(told);
      };
      const { reason } = (await get()) as { reason: string };
      expect(reason).toContain('[secret]');
      const encoded = new URLSearchParams({ '': credentials.clientSecret }).toString().slice(1);
      for (const form of [credentials.clientSecret, encoded, Buffer.from(encoded).toString('base64').slice(4, -4)])
        expect(reason).not.toContain(form);
    },
  );

  it('cannot be had from an endpoint that hangs up, or is not there', async () => {
    begin();
    endpoint.answer = (response) => response.socket?.resetAndDestroy();
    expect(await get()).toMatchObject({
      isRefused: false,
      reason: expect.stringContaining('cannot be used: ECONNRESET'),
    });
    begin({ tokenUrl: 'http://127.0.0.1:1/token' });
    expect(await get()).toMatchObject({
      isRefused: false,
      reason: expect.stringContaining('cannot be used: ECONNREFUSED'),
    });
  });

  it('comes by the answer that lay in the socket while this process stood still', async () => {
    begin();
    endpoint.answer = (response) => {
      response.end('{"access_token": "token"}');
      standStill(1500);
    };
    const asked = requestToken(credentials, outbound.connectorFor(), new AbortController().signal, 1000);
    expect(await asked).toMatchObject({ status: 200 });
  });

  it('cannot be had where addresses are refused', async () => {
    begin();
    const guarded = new Outbound(readSettings({ CALLBACK_NETWORKS: 'public' }));
    tokens = new OAuth2Tokens(
      guarded,
      () => now,
      () => ledgerNow,
    );
    expect(await get()).toMatchObject({
      isRefused: true,
      reason: expect.stringContaining('CALLBACK_ALLOWED_NETWORKS'),
    });
    expect(endpoint.requests).toEqual([]);
  });

  it('is fetched anew when a receiver refused it, but not all the time', async () => {
    begin();
    await get();
    expect(tokens.refused(credentials, 'Bearer token-1')).toBe(false);
    expect(await get()).toBe('Bearer token-1'); // it is new: perhaps the receiver refuses all of them
    now += 30_000;
    expect(tokens.refused(credentials, 'Bearer an-older-one')).toBe(true);
    expect(await get()).toBe('Bearer token-1');
    expect(tokens.refused(credentials, 'Bearer token-1')).toBe(true);
    expect(await get()).toBe('Bearer token-2');
  });

  it('can come from an endpoint with a certificate of its own that demands one', async () => {
    const { certificate, key } = clients[0]!;
    const strict = new TokenEndpoint(strictTls);
    await strict.start();
    const tokenUrl = `https://127.0.0.1:${strict.port}/token`;
    begin({ tokenUrl, tokenTls: { certificate, key, authority: authority.certificate } });
    expect(await get()).toBe('Bearer token-1');
    begin({ tokenUrl });
    expect(await get()).toMatchObject({ isRefused: false, reason: expect.stringMatching(/CERT|certificate/) });
    strict.stop();
  });

  it('is not asked for with a key that takes too long to sign, which was stored before that was looked at', async () => {
    begin({ tokenTls: { certificate: clients[0]!.certificate, key: longKey(8192) } });
    const reason = expect.stringContaining('is not asked: the key of the client certificate cannot be used');
    expect(await get()).toMatchObject({ isRefused: true, reason });
    expect(endpoint.requests).toEqual([]);
  });

  it('is not asked for with a certificate that has ended by the clock of the ledger', async () => {
    const { certificate, key } = makeCertificate('ends', { validTo: new Date('2033-05-06T07:08:09Z') });
    begin({ tokenTls: { certificate, key } });
    ledgerNow = Date.parse('2033-05-06T07:08:09Z');
    const reason = expect.stringContaining('is not asked: its client certificate ended at 2033-05-06T07:08:09.000Z');
    expect(await get()).toMatchObject({ isRefused: true, reason });
    expect(endpoint.requests).toEqual([]);
  });
});

describe('a JWT of the kind of the Notificaties API', () => {
  it('has the claims of its clients, is fresh, and serves the deliveries of some seconds', () => {
    let now = 1_700_000_000_900;
    const tokens = new ZgwTokens({ now: () => now } as LedgerClock);
    const credentials = {
      kind: 'zgw',
      clientId: 'heraut',
      secret: 'zgw',
      userId: '',
      userRepresentation: 'Heraut',
    } as const;
    const first = tokens.authorizationFor(credentials);
    expect(
      jwt.verify(first.replace('Bearer ', ''), 'zgw', { algorithms: ['HS256'], clockTimestamp: now / 1000 }),
    ).toEqual({
      iss: 'heraut',
      iat: 1_700_000_000,
      client_id: 'heraut',
      user_id: '',
      user_representation: 'Heraut',
    });
    now += 9_999;
    expect(tokens.authorizationFor(credentials)).toBe(first);
    now += 1;
    expect(tokens.authorizationFor(credentials)).not.toBe(first);
    expect(tokens.authorizationFor({ ...credentials, secret: 'changed' })).not.toBe(first);
  });

  it('is signed with any text, also one that looks like a private key', () => {
    const { key } = clients[0]!;
    const parts = { kind: 'zgw', clientId: 'heraut', secret: key, userId: '', userRepresentation: '' } as const;
    const token = new ZgwTokens({ now: Date.now } as LedgerClock).authorizationFor(parts).replace('Bearer ', '');
    expect(jwt.verify(token, createSecretKey(Buffer.from(key)), { algorithms: ['HS256'] })).toBeDefined();
  });
});
