import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import dns from 'node:dns';
import { startPrivateRedis } from '../../scripts/private-servers.mjs';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { eventually } from '../support/eventually.js';

describe('the connection to Redis', () => {
  let redis: Redis;
  let logged: () => { event: string; error?: Error }[];

  beforeEach(() => {
    const spies = (['log', 'warn'] as const).map((level) => vi.spyOn(Logger.prototype, level).mockReturnValue());
    const lines = spies.map(({ mock }) => mock);
    logged = () =>
      lines
        .flatMap(({ calls, invocationCallOrder }) =>
          calls.map(([line], nr) => ({ line: line as { event: string }, order: invocationCallOrder[nr]! })),
        )
        .toSorted((one, other) => one.order - other.order)
        .map(({ line }) => line);
  });
  afterEach(() => {
    redis.disconnect();
    vi.restoreAllMocks();
  });

  const events = () => logged().map(({ event }) => event);
  const write = () => redis.set('w:test', '1');
  const writesAgain = () => eventually(() => write().catch(() => false), 'a write');

  it('tells once that it leads to a read-only replica, however often it is made anew, and once when a write works', async () => {
    const server = await startPrivateRedis();
    try {
      redis = openRedis(server.redis.url);
      await writesAgain();
      for (const round of [1, 2]) {
        let connections = 0;
        redis.on('ready', () => (connections += 1));
        await redis.replicaof('127.0.0.1', 1);
        await eventually(async () => {
          await write().catch(() => {});
          return connections >= 3;
        }, 'some connections to the replica');
        const told = Array.from({ length: round }, () => ['redis.connected', 'redis.failed']).flat();
        expect(events()).toEqual(told);
        expect(logged().at(-1)!.error!.message).toMatch(/^READONLY/);
        await eventually(() => redis.replicaof('NO', 'ONE'));
        await writesAgain();
        await eventually(() => events().length > told.length, 'word that it works');
        expect(events()).toEqual([...told, 'redis.connected']);
      }
    } finally {
      await server.stop();
    }
  });

  it('tells that it fails where the name has several addresses', async () => {
    // As `dns` has it for a name with two: the error of both together has no message.
    const addresses = [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ];
    const lookUp = (_: string, __: object, done: (error: null, found: object) => void) => done(null, addresses);
    vi.spyOn(dns, 'lookup').mockImplementation(lookUp as unknown as typeof dns.lookup);
    redis = openRedis('redis://redis.example:1');
    await eventually(() => events().includes('redis.failed'), 'the failure');
    let tries = 0;
    redis.on('close', () => (tries += 1));
    await eventually(() => tries >= 3, 'further tries');
    expect(events()).toEqual(['redis.failed']);
  });
});
