import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Application } from '../../src/auth/application.js';
import { RefusalLimit } from '../../src/auth/refusal-limit.service.js';
import { readSettings } from '../../src/config/settings.js';
import type { Clock } from '../../src/infra/clock.js';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { eventually } from '../support/eventually.js';
import { createRedisDatabase, type TestRedis } from '../support/redis.js';

const config = { settings: readSettings({ REFUSALS_PER_MINUTE: '20' }) };
const clock = { now: () => 1_800_000_000_000 } as Clock;
/** No group begins with a zero, which the keys would leave out. */
const someCaller = () => ({ ip: `2001:db8:1${randomUUID().slice(0, 3)}:1${randomUUID().slice(0, 3)}::1` });
const someApplication = () => ({ id: randomUUID() }) as Application;

describe('the limit of refusals', () => {
  let database: TestRedis;
  let connections: Redis[];

  beforeAll(async () => {
    Logger.overrideLogger(false);
    database = await createRedisDatabase();
    connections = [openRedis(database.url), openRedis(database.url)];
    await eventually(() => connections.every(({ status }) => status === 'ready'), 'the connections');
  });

  afterAll(async () => {
    for (const redis of connections) redis.disconnect();
    await database.release();
  });

  /** One for each process. */
  const limits = () =>
    connections.map((redis) => new RefusalLimit(config, clock, redis)) as [RefusalLimit, RefusalLimit];

  it('is one for all processes that share a Redis, and the keys end by themselves', async () => {
    const [one, other] = limits();
    const caller = someCaller();
    for (let refusal = 0; refusal < 20; refusal++) expect(one.add(caller, undefined, false)).toBeUndefined();
    expect(one.add(caller, undefined, false)).toBe(60);
    const [redis] = connections as [Redis];
    const keysOfCaller = () => redis.keys(`refused:*${caller.ip.replace('::1', '')}*`);
    await eventually(async () => (await redis.get((await keysOfCaller())[0]!)) === '20', 'all of them to be told');
    // The other learns of it when it has a tenth of the limit to tell, and an answer.
    let own = 0;
    const isRefused = () => {
      if (other.add(caller, undefined, false) !== undefined) return true;
      own++;
      return false;
    };
    await eventually(isRefused, 'the other process to know', { everyMs: 200 });
    expect(own).toBeLessThan(20);
    const keys = await keysOfCaller();
    expect(keys).toHaveLength(1);
    expect(await redis.pttl(keys[0]!)).toBeGreaterThan(0);
  });

  it('counts an application for all addresses, and an address for all applications', () => {
    const [limit] = limits();
    const application = someApplication();
    for (let refusal = 0; refusal < 20; refusal++) expect(limit.add(someCaller(), application, false)).toBeUndefined();
    expect(limit.add(someCaller(), application, false)).toBe(60);
    const caller = someCaller();
    for (let refusal = 0; refusal < 20; refusal++) expect(limit.add(caller, someApplication(), true)).toBeUndefined();
    expect(limit.add(caller, someApplication(), true)).toBe(60);
  });

  it('counts guesses also of an address that has used up its refusals', () => {
    const [limit] = limits();
    const [caller, application] = [someCaller(), someApplication()];
    for (let refusal = 0; refusal < 30; refusal++) limit.add(caller, undefined, false);
    for (let guess = 0; guess < 20; guess++) {
      expect(limit.waitAsGuesser(caller, application)).toBeUndefined();
      expect(limit.add(caller, application, true)).toBe(60);
    }
    expect(limit.waitAsGuesser(caller, application)).toBe(60);
    expect(limit.waitAsGuesser(someCaller(), application)).toBeUndefined();
    expect(limit.waitAsGuesser(caller, someApplication())).toBeUndefined();
  });

  it('goes on in each process while Redis is away, and keeps nobody waiting', () => {
    const away = openRedis('redis://127.0.0.1:1');
    try {
      const limit = new RefusalLimit(config, clock, away);
      const caller = someCaller();
      for (let refusal = 0; refusal < 20; refusal++) expect(limit.add(caller, undefined, false)).toBeUndefined();
      expect(limit.add(caller, undefined, false)).toBe(60);
      expect(limit.add(someCaller(), undefined, false)).toBeUndefined();
    } finally {
      away.disconnect();
    }
  });
});
