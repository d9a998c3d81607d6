import { Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { createSecretKey } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import jwt from 'jsonwebtoken';
import { describe, expect, it } from 'vitest';
import type { Catalogue } from '../catalogue/catalogue.service.js';
import { readSettings } from '../config/settings.js';
import type { Clock } from '../infra/clock.js';
import { PermissionProblem, UnavailableProblem } from '../infra/http/problem.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import { AuthorizationGuard } from './authorization.guard.js';
import { Authorization } from './authorization.service.js';
import { RefusalLimit } from './refusal-limit.service.js';
import { scopes } from './scopes.js';
import { TokenVerifier } from './token-verifier.service.js';
import type { UserSessions } from './user-sessions.js';

Logger.overrideLogger(false); // a token that seems to lie ahead is noted

const now = 1_800_000_000;
const application: Application = {
  id: '1',
  clientId: 'client',
  key: createSecretKey(Buffer.from('secret')),
  scopes: new Set([scopes.publish]),
  isSuperuser: false,
  alertEmail: null,
};
const requestWith = (claims: object) => {
  const token = jwt.sign({ client_id: 'client', iat: now, ...claims }, 'secret');
  return { ip: '192.0.2.1', headers: { authorization: `Bearer ${token}` } } as FastifyRequest;
};

/** A process that is behind until it compares clocks, and knows no application until it reads the catalogue again. */
function setUp({ behindSeconds = 0, knowsApplication = true, isUnreadable = false, compare = () => {} }) {
  const world = { seconds: now - behindSeconds, knowsApplication, comparisons: 0, looks: 0 };
  const config = { settings: readSettings({}) };
  const directory = {
    find: () => {
      if (!world.knowsApplication) return undefined;
      return isUnreadable ? { ...application, key: undefined, isUnreadable } : application;
    },
  } as unknown as ApplicationDirectory;
  const catalogue = {
    refresh: async () => {
      world.looks++;
      world.knowsApplication = true;
    },
  } as unknown as Catalogue;
  const ledgerClock = {
    now: () => world.seconds * 1000,
    compare: async () => {
      compare();
      world.comparisons++;
      world.seconds = now;
    },
  } as unknown as LedgerClock;
  const limit = new RefusalLimit(config, { now: () => now * 1000 } as Clock, null);
  const tokens = new TokenVerifier(directory, ledgerClock, limit, config);
  const authorization = new Authorization(tokens, directory);
  const guard = new AuthorizationGuard(
    new Reflector(),
    authorization,
    catalogue,
    limit,
    {} as UserSessions,
    ledgerClock,
  );
  return { world, authorize: (claims: object) => guard.authorize(requestWith(claims), [scopes.publish]) };
}

describe('a token of this moment, where the machine of this process was suspended', () => {
  it.each([
    ['its nbf', 3, { nbf: now }],
    ['its iat', 300, {}],
  ])('is good, although %s seems to lie ahead', async (_, behindSeconds, claims) => {
    const { authorize } = setUp({ behindSeconds });
    expect(await authorize(claims)).toBe(application);
  });

  it('is good, although the application was made just now besides', async () => {
    const { authorize } = setUp({ behindSeconds: 300, knowsApplication: false });
    expect(await authorize({})).toBe(application);
  });

  it('is not refused for good where Postgres cannot be asked: it may be sent again', async () => {
    const compare = () => {
      throw new Error('away');
    };
    const { authorize } = setUp({ behindSeconds: 300, compare });
    const refused = await Promise.resolve(authorize({})).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(UnavailableProblem);
  });
});

it('a token that lies ahead of Postgres’ clock as well is refused', async () => {
  const { authorize } = setUp({});
  const refused = await Promise.resolve(authorize({ nbf: now + 5 })).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(PermissionProblem);
  expect(refused).toMatchObject({ code: 'jwt-immaturesignatureerror' });
});

it('a good token costs no look at all: its application is known at once', () => {
  const { authorize, world } = setUp({});
  expect(authorize({})).toBe(application);
  expect(world.comparisons).toBe(0);
});

it('a token of an application whose secret cannot be decrypted here may be sent again, and counts as no refusal', () => {
  const { authorize, world } = setUp({ isUnreadable: true });
  for (let times = 0; times < 100; times++) {
    let refused: unknown;
    try {
      void authorize({});
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(UnavailableProblem);
    expect(refused).toMatchObject({ code: 'secret-unreadable', extra: { headers: { 'retry-after': '10' } } });
  }
  expect(world.looks).toBe(0);
});
