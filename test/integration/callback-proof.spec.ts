import { Logger } from '@nestjs/common';
import jwt from 'jsonwebtoken';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../src/config/settings.js';
import { Authorizations } from '../../src/credentials/authorizations.service.js';
import { verbatim, type Credentials } from '../../src/credentials/credentials.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Connector } from '../../src/outbound/connector.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { newKey, SigningKey } from '../../src/signing/signing-key.js';
import { CallbackProof } from '../../src/subscriptions/callback-proof.service.js';
import { eventually } from '../support/eventually.js';
import { longKey } from '../support/long-key.js';
import { answer, drip, hang, Receiver, reset, type Behaviour } from '../support/receiver.js';
import { standStill } from '../support/stand-still.js';
import { certificate, key } from '../support/tls-identity.js';
import { TokenEndpoint } from '../support/token-endpoint.js';

class HurriedProof extends CallbackProof {
  protected override readonly timeouts = { turnMs: 200, connectMs: 200, overallMs: 200 };
}

const config = { settings: readSettings({}) };
const outbound = new Outbound(config.settings);
/** Hours ahead of that of this process. */
const ledgerClock = { now: () => Date.now() + 6 * 3_600_000 } as LedgerClock;
const authorizations = new Authorizations(outbound, systemClock, ledgerClock);

const oauth2 = (tokenUrl: string): Credentials => ({
  ...verbatim,
  kind: 'oauth2',
  tokenUrl,
  clientId: 'client',
  clientSecret: 'secret',
  scope: null,
  clientAuthentication: 'basic',
  tokenTls: null,
});

describe('a callback that sends an informational response first', () => {
  it('is judged by its answer', async () => {
    const receiver = await Receiver.start();
    receiver.always((request, response) => {
      response.writeContinue();
      response.writeHead(request.headers.authorization ? 204 : 401).end();
    });
    const request = { callbackUrl: receiver.url, auth: 'x', credentials: verbatim, signingKeys: [], isUrlNew: true };
    await expect(
      new CallbackProof(config, outbound, authorizations, ledgerClock).prove(request),
    ).resolves.toBeUndefined();
    await receiver.stop();
  });
});

describe('a callback behind a firewall that refuses calls that do not say whose they are', () => {
  it('is proved: the calls have the headers of those with notifications', async () => {
    const receiver = await Receiver.start();
    receiver.next(answer(401), answer(204));
    const request = { callbackUrl: receiver.url, auth: 'x', credentials: verbatim, isUrlNew: true };
    await new CallbackProof(config, outbound, authorizations, ledgerClock).prove(request);
    expect(receiver.requests).toHaveLength(2);
    for (const { headers } of receiver.requests)
      expect(headers).toMatchObject({ 'user-agent': expect.stringMatching(/^Heraut\/\d/), accept: '*/*' });
    await receiver.stop();
  });
});

describe('a callback whose abonnement has no authorization', () => {
  it('is called without that header', async () => {
    const receiver = await Receiver.start();
    receiver.next(answer(401), answer(204));
    const request = { callbackUrl: receiver.url, auth: '', credentials: verbatim, isUrlNew: true };
    await new CallbackProof(config, outbound, authorizations, ledgerClock).prove(request);
    expect(receiver.requests.map(({ headers }) => 'authorization' in headers)).toEqual([false, false]);
    await receiver.stop();
  });
});

describe('a callback that changes to another protocol', () => {
  it('is refused', async () => {
    const receiver = await Receiver.start();
    const changed = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n';
    receiver.always((_, response) => void response.socket!.write(changed));
    const request = { callbackUrl: receiver.url, auth: 'x', credentials: verbatim, signingKeys: [], isUrlNew: false };
    const proof = new CallbackProof(config, outbound, authorizations, ledgerClock);
    await expect(proof.prove(request)).rejects.toMatchObject({
      extra: { invalidParams: [{ code: 'invalid-callback-url' }] },
    });
    await receiver.stop();
  });
});

describe('a callback that this machine has no means to call', () => {
  const outOfFiles = new Outbound(config.settings, (_name, _options, found) =>
    found(Object.assign(new Error('getaddrinfo EMFILE'), { code: 'EMFILE' }), ''),
  );
  const request = { callbackUrl: 'http://receiver.test/', auth: 'x', credentials: verbatim, isUrlNew: true };

  it.each<[string, Credentials]>([
    ['is not refused: its subscriber may try again', verbatim],
    [
      'has not proved that it wants a certificate',
      { ...verbatim, tls: { id: 'tls', expiresAt: null, certificate, key } },
    ],
  ])('%s', async (_what, credentials) => {
    const proof = new CallbackProof(config, outOfFiles, authorizations, ledgerClock);
    const detail = 'This server cannot make a connection to the callback now.';
    await expect(proof.prove({ ...request, credentials })).rejects.toMatchObject({ status: 503, detail });
  });

  it('is not refused either where that is so of the endpoint of its token, however soon it is tried again', async () => {
    const logged = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const withoutMeans = new Authorizations(outOfFiles, systemClock, ledgerClock);
    const proof = new CallbackProof(config, outbound, withoutMeans, ledgerClock);
    const credentials = oauth2('http://tokens.test/token');
    for (let times = 0; times < 2; times++)
      await expect(proof.prove({ ...request, credentials, isUrlNew: false })).rejects.toMatchObject({
        status: 503,
        extra: { headers: { 'retry-after': '1' } },
      });
    expect(logged).toHaveBeenCalledOnce();
    logged.mockRestore();
  });
});

describe('a callback whose certificate was stored with a key that takes too long to sign', () => {
  it('is not called, and says why', async () => {
    const receiver = await Receiver.start();
    const credentials = { ...verbatim, tls: { id: 'tls', expiresAt: null, certificate, key: longKey(8192) } };
    const proof = new CallbackProof(config, outbound, authorizations, ledgerClock);
    await expect(
      proof.prove({ callbackUrl: receiver.url, auth: 'x', credentials, isUrlNew: true }),
    ).rejects.toMatchObject({ extra: { invalidParams: [{ name: 'credentials.tls.key', code: 'unusable-key' }] } });
    expect(receiver.requests).toEqual([]);
    await receiver.stop();
  });
});

describe('a callback that looks at the time', () => {
  it('gets the ledger’s in token and signatures, however wrong the clock of the process is', async () => {
    const receiver = await Receiver.start();
    const credentials: Credentials = {
      ...verbatim,
      kind: 'zgw',
      clientId: 'heraut',
      secret: 'x'.repeat(32),
      userId: '',
      userRepresentation: '',
    };
    const signingKeys = [new SigningKey('key', 'v1', newKey('v1').secret, null)];
    const before = ledgerClock.now();
    receiver.next(answer(401), answer(204));
    const request = { callbackUrl: receiver.url, auth: '', credentials, signingKeys, isUrlNew: true };
    await new CallbackProof(config, outbound, authorizations, ledgerClock).prove(request);
    const { headers } = receiver.requests.at(-1)!;
    const token = jwt.decode(String(headers.authorization).replace('Bearer ', '')) as { iat: number };
    for (const seconds of [token.iat, Number(headers['webhook-timestamp'])])
      expect(Math.abs(seconds * 1000 - before)).toBeLessThan(3_600_000);
    await receiver.stop();
  });
});

describe('a callback that this process kept waiting while it stood still', () => {
  class UnhurriedProof extends CallbackProof {
    protected override readonly timeouts = { turnMs: 1000, connectMs: 1000, overallMs: 1000 };
  }
  const thenStandStill =
    (behaviour: Behaviour): Behaviour =>
    (request, response) => {
      behaviour(request, response);
      standStill(1500);
    };
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await Receiver.start();
  });
  afterAll(() => receiver.stop());

  const prove = (credentials: Credentials = verbatim) =>
    new UnhurriedProof(config, outbound, authorizations, ledgerClock).prove({
      callbackUrl: receiver.url,
      auth: 'x',
      credentials,
      isUrlNew: true,
    });

  it('is judged by the answer that lay in the socket meanwhile', async () => {
    receiver.next(thenStandStill(answer(401)), thenStandStill(answer(204)));
    await expect(prove()).resolves.toBeUndefined();
  });

  it.each<[string, Credentials]>([
    ['is not refused where it gave up: its subscriber may try again', verbatim],
    [
      'has not proved by giving up that it wants a certificate',
      { ...verbatim, tls: { id: 'tls', expiresAt: null, certificate, key } },
    ],
  ])('%s', async (_what, credentials) => {
    receiver.next(thenStandStill(reset));
    const detail = 'This server stood still during the call.';
    await expect(prove(credentials)).rejects.toMatchObject({ status: 503, detail });
  });
});

/** Of a machine that may run out of files. */
class PassingOutbound extends Outbound {
  isOutOfFiles = false;

  override connectorFor(...identity: Parameters<Outbound['connectorFor']>): Connector {
    if (!this.isOutOfFiles) return super.connectorFor(...identity);
    return (_options, connected) => {
      connected(Object.assign(new Error('socket EMFILE'), { code: 'EMFILE' }), null);
      return undefined;
    };
  }
}

describe('a callback for which a token is kept already', () => {
  const endpoint = new TokenEndpoint();
  let receiver: Receiver;
  beforeAll(async () => {
    await endpoint.start();
    receiver = await Receiver.start();
  });
  afterAll(async () => {
    endpoint.stop();
    await receiver.stop();
  });

  /**
   * The tokens that the callback is shown when it accepts these, and a first one was fetched so long ago, and what
   * comes of it.
   */
  async function shownTokens(accepted: string[], ageMs: number, giveNext?: TokenEndpoint['answer'] | 'out of files') {
    endpoint.reset();
    receiver.requests.length = 0;
    let passedMs = 0;
    const clock: Clock = {
      now: () => systemClock.now() + passedMs,
      pause: (ms, signal) => systemClock.pause(ms, signal),
    };
    const means = new PassingOutbound(config.settings);
    const kept = new Authorizations(means, clock, ledgerClock);
    const credentials = oauth2(`http://127.0.0.1:${endpoint.port}/token`);
    await kept.of({ auth: '', credentials });
    passedMs = ageMs;
    if (giveNext === 'out of files') means.isOutOfFiles = true;
    else endpoint.answer = giveNext ?? endpoint.answer;
    receiver.always((request, response) => {
      const isAccepted = accepted.includes(String(request.headers.authorization));
      response.writeHead(isAccepted ? 204 : 401).end();
    });
    const request = { callbackUrl: receiver.url, auth: '', credentials, isUrlNew: false };
    const proof = new CallbackProof(config, outbound, kept, ledgerClock).prove(request);
    const outcome = await proof.then(
      () => 'proved',
      (error: { status: number; extra: { invalidParams?: { reason: string }[] } }) =>
        error.extra.invalidParams?.[0]?.reason ?? error.status,
    );
    return { outcome, shown: receiver.requests.map(({ headers }) => headers.authorization) };
  }
  const refusal = 'The callback answers 401 to a call with the authorization given; it must answer 200 to 209.';

  it('is shown a new one when it refuses that: it may have been revoked', async () => {
    expect(await shownTokens(['Bearer token-2'], 30_000)).toEqual({
      outcome: 'proved',
      shown: ['Bearer token-1', 'Bearer token-2'],
    });
  });

  it('is refused when it refuses the new one as well', async () => {
    expect(await shownTokens(['Bearer token-3'], 30_000)).toEqual({
      outcome: refusal,
      shown: ['Bearer token-1', 'Bearer token-2'],
    });
  });

  it('is refused by its first answer while a token is so young that no other one is asked for', async () => {
    expect(await shownTokens(['Bearer token-2'], 20_000)).toEqual({ outcome: refusal, shown: ['Bearer token-1'] });
  });

  it('is refused by its first answer where no new one can be had', async () => {
    const logged = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const fail: TokenEndpoint['answer'] = (response) => void response.writeHead(500).end();
    expect(await shownTokens(['Bearer token-2'], 30_000, fail)).toEqual({
      outcome: refusal,
      shown: ['Bearer token-1'],
    });
    expect(logged).toHaveBeenCalledOnce();
    logged.mockRestore();
  });

  it('is not refused where this machine has no means to ask for a new one', async () => {
    const logged = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    expect(await shownTokens(['Bearer token-2'], 30_000, 'out of files')).toEqual({
      outcome: 503,
      shown: ['Bearer token-1'],
    });
    logged.mockRestore();
  });
});

describe('a slow callback', () => {
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await Receiver.start();
  });

  afterAll(() => receiver.stop());

  const request = () => ({
    callbackUrl: receiver.url,
    auth: 'x',
    credentials: verbatim,
    signingKeys: [],
    isUrlNew: true,
  });

  it('is refused when it does not answer in time', async () => {
    receiver.always(hang);
    const logged = vi.spyOn(Logger.prototype, 'log').mockImplementation(() => {});
    const reason = 'The callback cannot be reached, or gives no answer over HTTP.';
    const proof = new HurriedProof(config, outbound, authorizations, ledgerClock);
    const refusal = await eventually(async () => {
      const thrown = await proof.prove(request()).catch((error: { status: number }) => error);
      return thrown?.status !== 503 && thrown; // 503: this process stood still meanwhile, as on a busy machine
    }, 'a call during which this process does not stand still');
    expect(refusal).toMatchObject({
      extra: { invalidParams: [{ name: 'callbackUrl', code: 'invalid-callback-url', reason }] },
    });
    const event = 'callback.not-proved';
    const { origin, hostname } = new URL(receiver.url);
    const told = { event, callback: origin, addresses: [hostname], reason: 'does not answer in time' };
    expect(logged.mock.calls).toEqual([[told]]);
    logged.mockRestore();
  });

  it('has proved itself with its status, even if its body never ends', async () => {
    receiver.next(answer(401), drip(10));
    await expect(
      new CallbackProof(config, outbound, authorizations, ledgerClock).prove(request()),
    ).resolves.toBeUndefined();
  });

  it('does not keep the server from stopping', async () => {
    const proof = new CallbackProof(config, outbound, authorizations, ledgerClock);
    receiver.requests.length = 0;
    receiver.next(hang);
    const outcome = proof.prove(request()).catch((error: unknown) => error);
    await eventually(() => receiver.requests.length === 1);
    proof.onModuleDestroy();
    expect(await outcome).toMatchObject({ status: 503, code: 'service_unavailable' });
  });
});

describe('callbacks that say nothing', () => {
  class PatientProof extends CallbackProof {
    protected override readonly timeouts = { turnMs: 200, connectMs: 10_000, overallMs: 30_000 };
  }

  it('are called eight at once for one application, and keep no other one from proving its own', async () => {
    const [silent, well] = await Promise.all([Receiver.start(), Receiver.start()]);
    silent.always(hang);
    const proof = new PatientProof(config, outbound, authorizations, ledgerClock);
    const prove = (callbackUrl: string, clientId: string) =>
      proof.proveNew({ callbackUrl, auth: 'x', credentials: undefined }, { clientId });
    const hanging = Array.from({ length: 8 }, () => prove(silent.url, 'one').catch((error: unknown) => error));
    await eventually(() => expect(silent.requests).toHaveLength(8));
    await expect(prove(silent.url, 'one')).rejects.toMatchObject({ status: 429, code: 'too-many-requests' });
    await expect(prove(well.url, 'two')).resolves.toBeUndefined();
    expect(silent.requests).toHaveLength(8);
    proof.onModuleDestroy();
    expect(await Promise.all(hanging)).toMatchObject(Array(8).fill({ status: 503 }));
    await Promise.all([silent.stop(), well.stop()]);
  });
});
