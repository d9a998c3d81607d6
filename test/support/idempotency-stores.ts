import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import type { IdempotencyStore } from '../../src/idempotency/idempotency-store.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { RedisIdempotencyStore } from '../../src/idempotency/idempotency-store.redis.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { eventually } from './eventually.js';
import { createRedisDatabase } from './redis.js';
import { embedded, real, type Stack } from './stacks.js';

export interface OpenStore {
  /** Two processes' views of the same store; where only one process can open it, twice the same. */
  stores: [IdempotencyStore, IdempotencyStore];
  /** Id of a process that is alive, and of one that is not. */
  living: string;
  dead: string;
  /** Writes something under a key that no store would. */
  corrupt: ((key: string, value: string | string[]) => Promise<void>) | undefined;
  release(): Promise<void>;
}

export interface StoreAdapter {
  name: string;
  open(): Promise<OpenStore>;
}

const postgresStore = (name: string, stack: Stack): StoreAdapter => ({
  name,
  async open() {
    const prepared = await stack.prepare();
    const settings = readSettings(prepared.settings);
    const first = await Postgres.open(settings, []);
    await first.migrate();
    const second = first.isEmbedded ? first : await Postgres.open(settings, []);
    const [living, dead] = [randomUUID(), randomUUID()];
    await first.dataSource.query(
      `INSERT INTO process (id, roles, expires_at, steady_since)
       VALUES ($1, '{}', now() + interval '1 hour', now() - interval '1 hour'), ($2, '{}', now() - interval '1 ms', now())`,
      [living, dead],
    );
    return {
      stores: [new PostgresIdempotencyStore(first), new PostgresIdempotencyStore(second)],
      living,
      dead,
      corrupt: undefined,
      release: async () => {
        await first.close();
        if (second !== first) await second.close();
        await prepared.release();
      },
    };
  },
});

const redisStore: StoreAdapter = {
  name: 'Redis',
  async open() {
    const database = await createRedisDatabase();
    const clients: Redis[] = [openRedis(database.url), openRedis(database.url)];
    await eventually(() => clients.every(({ status }) => status === 'ready'));
    const [living, dead] = [randomUUID(), randomUUID()];
    const [first, second] = clients.map((client) => new RedisIdempotencyStore(client, living)) as [
      RedisIdempotencyStore,
      RedisIdempotencyStore,
    ];
    await first.announce();
    return {
      stores: [first, second],
      living,
      dead,
      corrupt: async (key, value) => {
        if (typeof value === 'string') await clients[0]!.set(key, value);
        else await clients[0]!.rpush(key, ...value);
      },
      release: async () => {
        await first.withdraw();
        for (const client of clients) client.disconnect();
        await database.release();
      },
    };
  },
};

export const storeAdapters: StoreAdapter[] = [
  redisStore,
  postgresStore('Postgres', real),
  postgresStore('embedded Postgres', embedded),
];
