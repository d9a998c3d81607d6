import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPrivateRedis } from '../../scripts/private-servers.mjs';
import { readSettings } from '../../src/config/settings.js';
import { RedisAttemptStates } from '../../src/delivery/attempt-states.redis.js';
import { redisIsInUse } from '../../src/health/part-checks.js';
import type { LockAnswer, LockRequest } from '../../src/idempotency/idempotency-store.js';
import { RedisIdempotencyStore } from '../../src/idempotency/idempotency-store.redis.js';
import {
  RedisOrPostgresIdempotencyStore,
  StoreChanges,
} from '../../src/idempotency/idempotency-store.redis-or-postgres.js';
import { isRedisGivenUp, lookAtOutage, storeInUse } from '../../src/idempotency/redis-outage.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { createDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { testServers } from '../support/test-servers.js';

const hour = 3_600_000;
const acquired: LockAnswer = { kind: 'acquired', takenOver: false };
const lockedBy = (holder: string): LockAnswer => ({ kind: 'locked', holder });
/** Shorter than in production, in the same order. */
const times = { reportAfter: 100, lookEvery: 25, believed: 300, pause: 400, calm: 500, longestCalm: 4000 };

/**
 * A process that brings its locks for longer than the pause loses them: a busy machine must not make one do that, nor
 * one that is so fast that it has tens of thousands.
 */
const unhurried = { ...times, believed: 1000, pause: 3000, calm: 3000, longestCalm: 12_000 };

type PrivateRedis = Awaited<ReturnType<typeof startPrivateRedis>>;

describe('while Redis cannot be used', () => {
  let server: PrivateRedis;
  let database: Awaited<ReturnType<typeof createDatabase>>;
  let postgres: Postgres;
  let proxy: TcpProxy;
  let clients: Redis[];
  let inRedis: RedisIdempotencyStore[];
  /** Two processes. The second one reaches Redis by way of the proxy. */
  let one: RedisOrPostgresIdempotencyStore;
  let other: RedisOrPostgresIdempotencyStore;
  let calls = 0;
  /** Both go by these. */
  let inForce: typeof times;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    server = await startPrivateRedis();
    database = await createDatabase(testServers.databaseUrl());
    postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    for (const id of ['one', 'other']) {
      await postgres.dataSource.query(`INSERT INTO process VALUES ('${id}', '{worker}', now() + interval '1 hour')`);
    }
  });
  afterAll(async () => {
    await postgres.close();
    await database.drop();
    await server.stop();
  });

  const startWith = async (those: typeof times) => {
    inForce = those;
    [one, other] = inRedis.map((store) => new RedisOrPostgresIdempotencyStore(store, postgres, those)) as [
      RedisOrPostgresIdempotencyStore,
      RedisOrPostgresIdempotencyStore,
    ];
    await one.announce();
    await other.announce();
  };
  const stop = () => Promise.all([one.withdraw(), other.withdraw()]);

  beforeEach(async () => {
    await postgres.dataSource.query('DELETE FROM redis_outage');
    await postgres.dataSource.query('DELETE FROM idempotency_key');
    proxy = await TcpProxy.start(server.redis.url);
    clients = [openRedis(server.redis.url), openRedis(proxy.url)];
    await eventually(() => clients.every(({ status }) => status === 'ready'));
    await clients[0]!.flushall();
    inRedis = clients.map(
      (client, nr) => new RedisIdempotencyStore(client, ['one', 'other'][nr]!, { beatEvery: 50, silentAfter: 2000 }),
    );
    await startWith(times);
  });
  afterEach(async () => {
    await stop();
    for (const client of clients) client.disconnect();
    await proxy.cut();
  });

  const newKey = () => `i9y:test:${randomUUID()}`;
  const requestFor = (holder: 'one' | 'other', key = newKey()): LockRequest => {
    return { key, token: `${holder}/${++calls}`, ttlMs: hour, requestHash: null, mayTakeOver: true };
  };
  /** As the delivery path does it: until a store answers. */
  const acquire = (store: RedisOrPostgresIdempotencyStore, request: LockRequest): Promise<LockAnswer> =>
    eventually(() => store.acquire(request));
  const nowIn = (store: 'redis' | 'postgres') =>
    eventually(async () => {
      const seen = await storeInUse(postgres, inForce);
      return seen.store === store && seen.isOpen;
    }, `locks to be in ${store}`);
  const keysInRedis = (keys: string[]) => clients[0]!.exists(...keys);
  const health = async () => {
    try {
      await redisIsInUse(clients[0]!, postgres).check();
      return 'up';
    } catch (error) {
      return (error as Error).message;
    }
  };

  const failures = [
    {
      name: 'is full',
      begin: async () => {
        await clients[0]!.config('SET', 'maxmemory', '1');
      },
      end: async () => {
        await clients[0]!.config('SET', 'maxmemory', '0');
      },
      canBeRead: true,
    },
    {
      name: 'is a read-only replica',
      begin: async () => {
        await clients[0]!.replicaof('127.0.0.1', 1);
      },
      end: async () => {
        // Each refusal makes a client connect anew.
        await eventually(() => clients[0]!.replicaof('NO', 'ONE'));
      },
      canBeRead: true,
    },
    {
      name: 'refuses scripts',
      begin: async () => {
        await clients[0]!.acl('SETUSER', 'default', '-@scripting');
      },
      end: async () => {
        await clients[0]!.acl('SETUSER', 'default', '+@scripting');
      },
      canBeRead: true,
    },
    { name: 'is frozen', begin: () => server.redis.freeze(), end: () => server.redis.thaw(), canBeRead: false },
    { name: 'is killed', begin: () => server.redis.kill9(), end: () => server.redis.start(), canBeRead: false },
  ];

  it.each(failures)(
    'because it $name, locks go on in Postgres, with every lock and seal that is not lost, and return by themselves',
    async ({ begin, end, canBeRead }) => {
      const before = { sealed: requestFor('one'), held: requestFor('one'), theirs: requestFor('other') };
      for (const request of [before.sealed, before.held]) expect(await acquire(one, request)).toEqual(acquired);
      expect(await acquire(other, before.theirs)).toEqual(acquired);
      await one.seal(before.sealed.key, before.sealed.token, 'before', hour);
      expect(await keysInRedis([before.sealed.key, before.held.key, before.theirs.key])).toBe(3);
      expect(await health()).toBe('up');

      await begin();
      try {
        await nowIn('postgres');
        expect(await isRedisGivenUp(postgres)).toBe(true);
        if (canBeRead) await eventually(async () => (await health()).includes('locked in Postgres'));
        expect(await acquire(other, requestFor('other', before.held.key))).toEqual(lockedBy('one'));
        expect(await acquire(one, requestFor('one', before.theirs.key))).toEqual(lockedBy('other'));
        expect(await one.seal(before.held.key, before.held.token, 'brought', hour)).toBe(true);
        expect(await acquire(other, requestFor('other', before.held.key))).toMatchObject({ outcome: 'brought' });
        // Locks and seals of a Redis that does not answer are lost for the time being.
        const expected = canBeRead ? { outcome: 'before' } : acquired;
        expect(await acquire(other, requestFor('other', before.sealed.key))).toMatchObject(expected);
        expect(await other.release(before.theirs.key, before.theirs.token)).toBe(true);
        expect(await acquire(one, requestFor('one', before.theirs.key))).toEqual(acquired);
      } finally {
        await end();
      }
      const meanwhile = { sealed: requestFor('one'), held: requestFor('one') };
      for (const request of Object.values(meanwhile)) expect(await acquire(one, request)).toEqual(acquired);
      await one.seal(meanwhile.sealed.key, meanwhile.sealed.token, 'meanwhile', hour);

      await nowIn('redis');
      const afterwards = requestFor('other');
      expect(await acquire(other, afterwards)).toEqual(acquired);
      expect(await keysInRedis([afterwards.key])).toBe(1);
      expect(await acquire(other, requestFor('other', meanwhile.sealed.key))).toMatchObject({ outcome: 'meanwhile' });
      expect(await acquire(other, requestFor('other', meanwhile.held.key))).toEqual(lockedBy('one'));
      expect(await acquire(other, requestFor('other', before.held.key))).toMatchObject({ outcome: 'brought' });
      expect(await acquire(other, requestFor('other', before.sealed.key))).toMatchObject({ outcome: 'before' });
      expect(await one.seal(meanwhile.held.key, meanwhile.held.token, 'done', hour)).toBe(true);
      await eventually(async () => (await health()) === 'up');
    },
  );

  it('no lock is given twice, though one process loses Redis again and again and the other does not', async () => {
    await stop();
    await startWith(unhurried);
    const given = new Map<string, string[]>();
    let isOver = false;
    const ask = async (store: RedisOrPostgresIdempotencyStore, holder: 'one' | 'other') => {
      for (let nr = 0; !isOver; nr++) {
        await sleep(5);
        const request = requestFor(holder, `i9y:test:${nr}`);
        const answer = await acquire(store, request);
        if (answer.kind !== 'acquired') continue;
        const how = answer.takenOver ? `${holder}, taken over` : holder;
        given.set(request.key, [...(given.get(request.key) ?? []), how]);
      }
    };
    const asking = [ask(one, 'one'), ask(other, 'other')];
    for (let round = 0; round < 2; round++) {
      await proxy.cut();
      await nowIn('postgres');
      const asked = given.size;
      await eventually(() => given.size > asked);
      await proxy.restore();
      await nowIn('redis');
      const askedBefore = given.size;
      await eventually(() => given.size > askedBefore);
    }
    isOver = true;
    await Promise.all(asking);
    expect([...given].filter(([, holders]) => holders.length !== 1)).toEqual([]);
  });

  it('a lock that was asked for in vain is not left behind in Redis', async () => {
    const request = requestFor('one');
    await server.redis.freeze();
    try {
      await expect(one.acquire(request)).rejects.toThrow(/timed out|closed/); // Redis will carry it out when it goes on
      await nowIn('postgres');
      // Nor when a further call finds that a seal which Redis may have cannot be read.
      const reading = [
        vi.spyOn(inRedis[0]!, 'answers', 'get').mockReturnValue(true),
        vi.spyOn(inRedis[0]!, 'sealOf').mockRejectedValue(new Error('the seal is not read')),
      ];
      await eventually(() =>
        one.acquire(request).then(
          () => false,
          (error: Error) => error.message.includes('is not read'),
        ),
      );
      for (const spy of reading) spy.mockRestore();
      expect(await acquire(one, request)).toEqual(acquired);
      expect(await one.release(request.key, request.token)).toBe(true);
    } finally {
      await server.redis.thaw();
    }
    await nowIn('redis');
    await eventually(async () => (await acquire(other, requestFor('other', request.key))).kind === 'acquired');
  });

  const beginOutage = () =>
    postgres.dataSource.query(
      `INSERT INTO redis_outage VALUES (true, now(), now() + interval '1 hour', 500)
       ON CONFLICT (singleton) DO UPDATE SET began_at = now(), ends_at = EXCLUDED.ends_at`,
    );
  const endOutage = () => postgres.dataSource.query('UPDATE redis_outage SET ends_at = now()');

  it('a lock that Postgres gave too late is not given on the way back, when Redis has given it to another process', async () => {
    await beginOutage();
    await nowIn('postgres');
    const late = requestFor('other');
    const { key } = late;
    const inTheWay = postgres.dataSource.createQueryRunner();
    await inTheWay.startTransaction();
    await inTheWay.query(`INSERT INTO idempotency_key (key, token, expires_at) VALUES ('${key}', 'third/1', now())`);
    const isWaiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    let answer: Promise<LockAnswer> | undefined;
    await eventually(async () => {
      answer ??= other.acquire(late).catch((error: unknown) => {
        answer = undefined; // it does not give locks there yet
        throw error;
      });
      answer.catch(() => {}); // looked at below
      return (await postgres.dataSource.query<unknown[]>(isWaiting)).length > 0;
    });
    // Refused in the end, it is forgotten there.
    const waiting = answer;
    await endOutage();
    await nowIn('redis');
    await inTheWay.rollbackTransaction();
    await inTheWay.release();
    await expect(waiting).rejects.toThrow(StoreChanges);
    expect(await acquire(one, requestFor('one', key))).toEqual(acquired);
    await beginOutage();
    await nowIn('postgres');
    expect(await acquire(other, late)).toEqual(lockedBy('one'));
  });

  it('a lock that another process left in Redis does not keep out the one that is brought there', async () => {
    await stop();
    await startWith(unhurried); // that process has to be gone within the pause
    await beginOutage();
    await nowIn('postgres');
    const held = requestFor('one');
    expect(await acquire(one, held)).toEqual(acquired);
    await clients[0]!.set('w:third', '1');
    await clients[0]!.set(held.key, 'Lthird/1 ');
    const bringing = vi.spyOn(inRedis[0]!, 'acquire');
    await endOutage();
    await eventually(() => bringing.mock.settledResults.some(({ type }) => type === 'fulfilled'));
    await clients[0]!.del(held.key); // as that process does when it has seen the change
    await nowIn('redis');
    expect(await acquire(other, requestFor('other', held.key))).toEqual(lockedBy('one'));
    expect(await one.seal(held.key, held.token, 'done', hour)).toBe(true);
  });

  it('a lock whose seal Redis refused is left to its TTL, unlike one that was to be released', async () => {
    const [done, undone] = [requestFor('one'), requestFor('one')];
    for (const request of [done, undone]) expect(await acquire(one, request)).toEqual(acquired);
    await clients[0]!.replicaof('127.0.0.1', 1);
    const refused = await Promise.allSettled([
      one.seal(done.key, done.token, 'done', hour),
      one.release(undone.key, undone.token),
    ]);
    await eventually(() => clients[0]!.replicaof('NO', 'ONE'));
    expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await eventually(async () => (await keysInRedis([undone.key])) === 0);
    expect(await keysInRedis([done.key])).toBe(1);
  });

  it('a process lets others notice a change before it gives locks in the other store, though Postgres’ clock was set', async () => {
    const before = performance.now();
    await postgres.dataSource.query(
      "INSERT INTO redis_outage VALUES (true, now() - interval '1 hour', now() + interval '1 hour', 500)",
    );
    expect(await storeInUse(postgres, times)).toMatchObject({ store: 'postgres', isOpen: true });
    await eventually(async () => {
      const { key } = requestFor('one');
      return (await acquire(one, requestFor('one', key))).kind === 'acquired' && (await keysInRedis([key])) === 0;
    });
    expect(performance.now() - before).toBeGreaterThanOrEqual(times.believed);
  });

  it('an outage from before Postgres’ clock was set back is over, and the next one begins when it is reported', async () => {
    await postgres.dataSource.query(
      "INSERT INTO redis_outage VALUES (true, now() + interval '50 minutes', now() + interval '1 hour', 60000)",
    );
    expect(await storeInUse(postgres, times)).toMatchObject({ store: 'redis', isOpen: true });
    expect(await health()).toBe('up');
    expect((await acquire(one, requestFor('one'))).kind).toBe('acquired');
    expect(await storeInUse(postgres, times, true)).toMatchObject({ store: 'postgres', isOpen: false });
    await nowIn('postgres');
  });

  it('a full one has no live state of an attempt rather than an old one', async () => {
    const states = new RedisAttemptStates(clients[0]!);
    const key = { notificationId: randomUUID(), subscriptionId: randomUUID() };
    const get = () => states.get(key.notificationId, key.subscriptionId);
    const state = {
      attempt: 2,
      status: 'sending',
      lastStatus: null,
      lastError: null,
      startedAt: null,
      nextAttemptAt: null,
    } as const;
    states.put(key, state, hour);
    await eventually(get);
    await clients[0]!.config('SET', 'maxmemory', '1');
    try {
      states.put(key, { ...state, attempt: 3 }, hour);
      await eventually(async () => (await get()) === undefined);
    } finally {
      await clients[0]!.config('SET', 'maxmemory', '0');
    }
  });

  it('a write that a replica refuses does not cost the connection each time, and with it what is under way beside', async () => {
    const [client] = clients as [Redis];
    await client.replicaof('127.0.0.1', 1);
    const begunAt = performance.now();
    let connections = 0;
    client.on('connect', () => connections++);
    for (let refused = 0; refused < 50;) {
      await client.set(newKey(), '').catch((error: Error) => {
        if (error.message.startsWith('READONLY')) refused++;
      });
      await sleep(1);
    }
    expect(connections).toBeGreaterThanOrEqual(1);
    expect(connections).toBeLessThanOrEqual(1 + (performance.now() - begunAt) / 1000);
    await eventually(() => client.replicaof('NO', 'ONE'));
  });

  it('a process that does not see where locks are gives none', async () => {
    const blind = { query: () => Promise.reject(new Error('Postgres is away')) } as unknown as Postgres;
    const store = new RedisOrPostgresIdempotencyStore(new RedisIdempotencyStore(clients[0]!, 'one'), blind, times);
    await store.announce();
    await expect(store.acquire(requestFor('one'))).rejects.toThrow(StoreChanges);
    await store.withdraw();
  });

  it('a process looks where locks are without reading all that was locked', async () => {
    await postgres.dataSource.query(
      `INSERT INTO idempotency_key (key, expires_at)
       SELECT 'i9y:test:' || nr, now() - nr * interval '1 ms' FROM generate_series(1, 10000) nr`,
    );
    await postgres.dataSource.query('ANALYZE idempotency_key');
    const { name, text, parameters } = lookAtOutage;
    const plan = await postgres.query({ name: `explain-${name}`, text: `EXPLAIN ${text}`, parameters }, { pause: 1 });
    expect(JSON.stringify(plan)).toMatch(/Index (Only )?Scan Backward using idempotency_key_expiry/);
    expect(await storeInUse(postgres)).toEqual({ store: 'redis', isOpen: true, hasKeysInPostgres: false });
  });

  it('locks stay in Postgres for twice as long after each outage that follows closely on another', async () => {
    // Longer than the test takes: it ends each outage itself.
    const report = () => storeInUse(postgres, { ...times, calm: 50_000, longestCalm: 150_000 }, true);
    const calmMs = async () => {
      const [row] = await postgres.dataSource.query<{ calm_ms: number }[]>('SELECT calm_ms FROM redis_outage');
      return row!.calm_ms;
    };
    const seen: number[] = [];
    for (let outage = 0; outage < 4; outage++) {
      expect(await report()).toMatchObject({ store: 'postgres', isOpen: false });
      seen.push(await calmMs());
      await report(); // the same outage
      expect(await calmMs()).toBe(seen.at(-1));
      await postgres.dataSource.query("UPDATE redis_outage SET ends_at = now() - interval '1 ms'");
    }
    expect(seen).toEqual([50_000, 100_000, 150_000, 150_000]);
    await postgres.dataSource.query("UPDATE redis_outage SET ends_at = now() - interval '1 hour'");
    await report();
    expect(await calmMs()).toBe(50_000);
  });
});
