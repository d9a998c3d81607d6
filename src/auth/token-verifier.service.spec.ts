import { describe, expect, it } from '@jest/globals';
import { createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { readSettings } from '../config/settings.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import { TokenVerifier } from './token-verifier.service.js';

const now = 1_800_000_000;
const application: Application = {
  id: '1',
  clientId: 'client',
  label: '',
  key: createSecretKey(Buffer.from('secret')),
  scopes: new Set(),
  isSuperuser: false,
};
const token = jwt.sign({ client_id: 'client', iat: now, exp: now + 60 }, 'secret');

/** A verifier whose clock and applications the test changes. */
function setUp() {
  const world = { seconds: now, application: application as Application | undefined };
  const directory = { find: () => world.application } as unknown as ApplicationDirectory;
  const verifier = new TokenVerifier(directory, { ledgerNow: () => world.seconds * 1000 } as Heartbeat, {
    settings: readSettings({}),
  });
  return { world, verifier };
}

describe('a token that was seen before', () => {
  it('still ends when its time is up', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token)).toBe(application);
    expect(verifier.verify(token)).toBe(application);
    world.seconds = now + 60;
    expect(verifier.verify(token)).toBe('jwt-expiredsignatureerror');
  });

  it('no longer counts once the application is gone, and counts again when it is back', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token)).toBe(application);
    world.application = undefined;
    expect(verifier.verify(token)).toBe('invalid-client-identifier');
    world.application = application;
    expect(verifier.verify(token)).toBe(application);
  });

  it('no longer counts once the secret is another', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token)).toBe(application);
    world.application = { ...application, key: createSecretKey(Buffer.from('other')) };
    expect(verifier.verify(token)).toBe('invalid-jwt-signature');
  });

  it('comes with the present permissions of the application, not with those it had then', () => {
    const { world, verifier } = setUp();
    expect(verifier.verify(token)).toBe(application);
    world.application = { ...application, isSuperuser: true };
    expect(verifier.verify(token)).toBe(world.application);
  });
});
