import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import type { AttemptState, AttemptStates } from '../../src/delivery/attempt-states.js';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { RedisAttemptStates } from '../../src/delivery/attempt-states.redis.js';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { eventually } from '../support/eventually.js';
import { createRedisDatabase } from '../support/redis.js';

interface Adapter {
  name: string;
  open(): Promise<{ states: AttemptStates; release: () => Promise<void>; redis?: Redis }>;
}

const adapters: Adapter[] = [
  {
    name: 'Redis',
    async open() {
      const database = await createRedisDatabase();
      const redis = openRedis(database.url);
      await eventually(() => redis.status === 'ready');
      const release = async () => {
        redis.disconnect();
        await database.release();
      };
      return { states: new RedisAttemptStates(redis), release, redis };
    },
  },
  {
    name: 'in-process',
    open: () => Promise.resolve({ states: new InProcessAttemptStates(), release: () => Promise.resolve() }),
  },
];

const waiting: AttemptState = {
  attempt: 3,
  status: 'waiting',
  lastStatus: 503,
  lastError: 'HTTP 503: "no" 😀',
  startedAt: null,
  nextAttemptAt: '2026-11-20T12:00:25.000Z',
};
const sending: AttemptState = {
  attempt: 4,
  status: 'sending',
  lastStatus: null,
  lastError: null,
  startedAt: '2026-11-20T12:00:25.100Z',
  nextAttemptAt: null,
};

describe.each(adapters)('the live attempt states, $name', (adapter) => {
  let states: AttemptStates;
  let redis: Redis | undefined;
  let release: () => Promise<void>;
  const newKey = () => ({ notificationId: randomUUID(), subscriptionId: randomUUID() });
  const get = ({ notificationId, subscriptionId }: ReturnType<typeof newKey>) =>
    states.get(notificationId, subscriptionId);

  beforeEach(async () => {
    Logger.overrideLogger(false);
    ({ states, release, redis } = await adapter.open());
  });
  afterEach(() => release());

  it('are undefined for a delivery that was never put', async () => {
    expect(await get(newKey())).toBeUndefined();
  });

  it('are those put last, of each delivery', async () => {
    const [one, other] = [newKey(), newKey()];
    states.put(one, waiting, 60_000);
    states.put(other, waiting, 60_000);
    states.put(one, sending, 60_000);
    await eventually(async () => (await get(one)) !== undefined);
    expect(await get(one)).toEqual(sending);
    expect(await get(other)).toEqual(waiting);
    expect(await get({ ...one, subscriptionId: other.subscriptionId })).toBeUndefined();
  });

  it('forget a delivery that is over', async () => {
    const key = newKey();
    states.put(key, waiting, 60_000);
    states.remove(key);
    states.remove(newKey());
    expect(await get(key)).toBeUndefined();
  });

  it('forget a state that is not put again', async () => {
    const key = newKey();
    states.put(key, waiting, 40.7);
    await eventually(async () => (await get(key)) === undefined);
  });

  it('keep the whole of a day-long wait, with the fraction that jitter gives it', async () => {
    const key = newKey();
    states.put(key, waiting, 52_000_180_000.25);
    await eventually(async () => (await get(key)) !== undefined);
    expect(await get(key)).toEqual(waiting);
  });

  it('never throw when a state is put', async () => {
    redis?.disconnect();
    expect(() => states.put(newKey(), waiting, 60_000)).not.toThrow();
    expect(() => states.remove(newKey())).not.toThrow();
    // An unhandled rejection would fail the run now.
    await new Promise((resolve) => setImmediate(resolve));
  });
});
