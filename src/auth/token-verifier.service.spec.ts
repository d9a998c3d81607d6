import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { readSettings } from '../config/settings.js';
import type { Clock } from '../infra/clock.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import { RefusalLimit } from './refusal-limit.service.js';
import { TokenVerifier } from './token-verifier.service.js';

const now = 1_800_000_000;
const application: Application = {
  id: '1',
  clientId: 'client',
  key: createSecretKey(Buffer.from('secret')),
  scopes: new Set(),
  isSuperuser: false,
  alertEmail: null,
};
const caller = { ip: '192.0.2.1' };
const token = jwt.sign({ client_id: 'client', iat: now, exp: now + 60 }, 'secret');

/** A verifier whose clock and applications the test changes. */
function setUp() {
  const world = { seconds: now, application: application as Application | undefined };
  const directory = { find: () => world.application } as unknown as ApplicationDirectory;
  const config = { settings: readSettings({ REFUSALS_PER_MINUTE: '3' }) };
  const clock = { now: () => world.seconds * 1000 } as Clock;
  const limit = new RefusalLimit(config, clock, null);
  const ledgerClock = { now: () => world.seconds * 1000 } as LedgerClock;
  return { world, limit, verifier: new TokenVerifier(directory, ledgerClock, limit, config) };
}

describe('a token that was seen before', () => {
  it('still ends when its time is up', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token, caller)).toBe(application);
    expect(verifier.verify(token, caller)).toBe(application);
    world.seconds = now + 60;
    expect(verifier.verify(token, caller)).toMatchObject({ code: 'jwt-expiredsignatureerror' });
  });

  it('no longer counts once the application is gone, and counts again when it is back', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token, caller)).toBe(application);
    world.application = undefined;
    expect(verifier.verify(token, caller)).toMatchObject({ code: 'invalid-client-identifier' });
    world.application = application;
    expect(verifier.verify(token, caller)).toBe(application);
  });

  it('no longer counts once the secret is another', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token, caller)).toBe(application);
    world.application = { ...application, key: createSecretKey(Buffer.from('other')) };
    expect(verifier.verify(token, caller)).toMatchObject({ code: 'invalid-jwt-signature' });
  });

  it('comes with the present permissions of the application, not with those it had then', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token, caller)).toBe(application);
    world.application = { ...application, isSuperuser: true };
    expect(verifier.verify(token, caller)).toBe(world.application);
  });
});

describe('a client whose clock is ahead', () => {
  let warned: { event: string; clientId: string; tokens: number }[];
  let monotonicMs: number;

  beforeEach(() => {
    [warned, monotonicMs] = [[], 5];
    const ignore = () => {};
    Logger.overrideLogger({ log: ignore, error: ignore, debug: ignore, warn: (event: never) => warned.push(event) });
    vi.spyOn(performance, 'now').mockImplementation(() => monotonicMs);
  });
  afterEach(() => {
    Logger.overrideLogger(true);
    vi.restoreAllMocks();
  });

  it('and that makes a token for each request, is warned of once a minute, with how many there were', () => {
    const { world, verifier } = setUp();
    let made = 0;
    const send = (clientId: string) => {
      world.application = { ...application, clientId };
      const ahead = jwt.sign({ client_id: clientId, iat: now + 1, jti: String(made++) }, 'secret');
      expect(verifier.verify(ahead, caller)).toBe(world.application);
    };
    for (const clientId of ['one', 'one', 'two', 'one']) send(clientId);
    const told = () => warned.map(({ event, clientId, tokens }) => [event, clientId, tokens]);
    const event = 'token.issued-in-future';
    expect(told()).toEqual([
      [event, 'one', 1],
      [event, 'two', 1],
    ]);
    monotonicMs += 60_000;
    send('one');
    expect(told().slice(2)).toEqual([[event, 'one', 3]]);
  });
});

describe('a caller that tries secrets', () => {
  const another = jwt.sign({ client_id: 'client', iat: now, jti: 'another' }, 'secret');
  const guess = jwt.sign({ client_id: 'client', iat: now }, 'guessed');

  it('has no further token checked in this minute, a right one neither, unless it was known', () => {
    const { world, limit, verifier } = setUp();
    expect(verifier.verify(token, caller)).toBe(application);
    for (let times = 0; times < 3; times++) {
      expect(verifier.verify(guess, caller)).toMatchObject({ code: 'invalid-jwt-signature' });
      expect(limit.add(caller, application, true)).toBeUndefined();
    }
    expect(verifier.verify(guess, caller)).toMatchObject({ code: 'throttled', waitSeconds: 60 });
    expect(verifier.verify(another, caller)).toMatchObject({ code: 'throttled' });
    expect(verifier.verify(token, caller)).toBe(application);
    // Neither others at the same application, nor the same caller under another, are kept out.
    expect(verifier.verify(another, { ip: '192.0.2.2' })).toBe(application);
    world.application = { ...application, id: '2' };
    expect(verifier.verify(another, caller)).toBe(world.application);

    world.application = application;
    world.seconds += 60;
    expect(verifier.verify(another, caller)).toBe(application);
  });
});

it('a token whose header has crit is refused, although its signature is right', () => {
  const { verifier } = setUp();
  const critical = jwt.sign({ client_id: 'client', iat: now }, 'secret', {
    header: { alg: 'HS256', crit: ['exp'] },
  });
  expect(verifier.verify(critical, caller)).toMatchObject({ code: 'jwt-decode-error' });
});
