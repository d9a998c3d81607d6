import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { IdempotencyStore, LockAnswer, LockRequest } from '../../src/idempotency/idempotency-store.js';
import { RedisIdempotencyStore } from '../../src/idempotency/idempotency-store.redis.js';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { eventually } from '../support/eventually.js';
import { storeAdapters, type OpenStore } from '../support/idempotency-stores.js';
import { createRedisDatabase } from '../support/redis.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const hour = 3_600_000;
const acquired: LockAnswer = { kind: 'acquired', takenOver: false };
const takenOver: LockAnswer = { kind: 'acquired', takenOver: true };
const lockedBy = (holder: string | null): LockAnswer => ({ kind: 'locked', holder });

describe('the idempotency store in Redis', () => {
  let opened: OpenStore;
  let store: IdempotencyStore;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    opened = await storeAdapters[0]!.open();
    [store] = opened.stores;
  });
  afterAll(() => opened.release());

  const requestFor = (key: string): LockRequest => {
    return { key, token: `${opened.living}/1`, ttlMs: hour, requestHash: null, mayTakeOver: true };
  };

  it.each<[string, string | string[]]>([
    ['nothing', ''],
    ['a word', 'hello'],
    ['a single letter', 'A'],
    ['another single letter', 'T'],
    ['a lock without a holder', 'L'],
    ['a lock whose holder has no id', 'Lsomebody '],
    ['a seal without an outcome', 'S'],
    ['a seal whose outcome was cut', 'S {"kind":"deliv'],
    ['a list', ['one', 'two']],
  ])(
    'counts as locked a key under which another program wrote %s, and answers the rest of the batch',
    async (_what, value) => {
      const [foreign, free] = [`i9y:test:${randomUUID()}`, `i9y:test:${randomUUID()}`];
      await opened.corrupt!(foreign, value);
      expect(await Promise.all([store.acquire(requestFor(foreign)), store.acquire(requestFor(free))])).toEqual([
        lockedBy(null),
        acquired,
      ]);
      expect(
        await Promise.all([
          store.seal(foreign, `${opened.living}/1`, 'done', hour),
          store.seal(free, `${opened.living}/1`, 'done', hour),
        ]),
      ).toEqual([false, true]);
    },
  );

  it('names no holder of a lock that another program wrote with an id that the ledger could not store', async () => {
    const foreign = `i9y:test:${randomUUID()}`;
    await opened.corrupt!(foreign, 'La\0b/1 ');
    expect(await store.acquire({ ...requestFor(foreign), mayTakeOver: false })).toEqual(lockedBy(null));
  });

  it('rejects while Redis cannot be reached, gives no caller a wrong answer, and works when it is back', async () => {
    const database = await createRedisDatabase();
    const proxy = await TcpProxy.start(database.url);
    const redis = openRedis(proxy.url);
    const through = new RedisIdempotencyStore(redis, 'through');
    await eventually(() => redis.status === 'ready');
    await through.announce();
    const key = `i9y:test:${randomUUID()}`;
    await through.acquire({ ...requestFor(key), token: 'through/1' });
    await proxy.cut();
    await expect(through.acquire(requestFor(key))).rejects.toThrow(/Connection|Stream|ECONNREFUSED|max retries/);
    await expect(through.seal(key, 'through/1', 'done', hour)).rejects.toThrow(
      /Connection|Stream|ECONNREFUSED|max retries/,
    );
    await expect(through.extend(key, 'through/1', hour)).rejects.toThrow(/Connection|Stream|ECONNREFUSED|max retries/);
    await proxy.restore();
    await eventually(() => through.seal(key, 'through/1', 'done', hour).catch(() => false));
    expect(await through.acquire(requestFor(key))).toMatchObject({ kind: 'sealed', outcome: 'done' });
    await through.withdraw();
    redis.disconnect();
    await proxy.cut();
    await database.release();
  });

  it('counts a process as alive from `announce` to `withdraw`, over a flush too', async () => {
    const database = await createRedisDatabase();
    const redis = openRedis(database.url);
    const process = new RedisIdempotencyStore(redis, 'process');
    await eventually(() => redis.status === 'ready');
    const key = `i9y:test:${randomUUID()}`;
    const lockIt = () => process.acquire({ ...requestFor(key), token: 'process/1' });
    const takeOver = () => process.acquire({ ...requestFor(key), token: 'another/1' });
    await process.announce();
    await lockIt();
    expect(await takeOver()).toEqual(lockedBy('process'));
    await database.release(); // empties it
    expect(await lockIt()).toEqual(acquired);
    await eventually(() => redis.exists('w:process'), 'the next beat');
    expect(await takeOver()).toEqual(lockedBy('process'));
    await process.withdraw();
    expect(await takeOver()).toEqual(takenOver);
    redis.disconnect();
    await database.release();
  });

  it('takes the locks of another process over at once when it is told that it has ended', async () => {
    const database = await createRedisDatabase();
    const redis = openRedis(database.url);
    const [ended, other] = ['ended', 'other'].map((id) => new RedisIdempotencyStore(redis, id));
    await eventually(() => redis.status === 'ready');
    const key = `i9y:test:${randomUUID()}`;
    const takeOver = () => other!.acquire({ ...requestFor(key), token: 'other/1' });
    await redis.set('w:ended', '1'); // as its last beat has left it
    await ended!.acquire({ ...requestFor(key), token: 'ended/1' });
    expect(await takeOver()).toEqual(lockedBy('ended'));
    await other!.forget('ended');
    expect(await takeOver()).toEqual(takenOver);
    redis.disconnect();
    await database.release();
  });
});
