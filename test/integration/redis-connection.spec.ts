import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { startPrivateRedis } from '../../scripts/private-servers.mjs';
import { openRedis } from '../../src/infra/redis/redis-connection.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';

describe('the connection to Redis', () => {
  let redis: Redis;
  let logged: () => { event: string; error?: Error }[];

  beforeEach(() => {
    const spies = (['log', 'warn'] as const).map((level) => vi.spyOn(Logger.prototype, level).mockReturnValue());
    vi.spyOn(Logger.prototype, 'debug').mockReturnValue();
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

  /** So many tries to connect that fail. */
  const failedTries = async (count: number) => {
    let tries = 0;
    redis.on('close', () => (tries += 1));
    await eventually(() => tries >= count, 'further tries');
  };

  it('cannot be used, rather than lead to database 0, where the server refuses its database', async () => {
    const server = await startPrivateRedis();
    const admin = new Redis(server.redis.url);
    try {
      redis = openRedis(`${server.redis.url}/99999`);
      let ready = 0;
      redis.on('ready', () => (ready += 1));
      const writes: Promise<unknown>[] = [];
      redis.on('connect', () =>
        writes.push(
          write().then(
            () => 'written',
            () => 'refused',
          ),
        ),
      );
      await failedTries(3);
      expect([ready, new Set(await Promise.all(writes)), await admin.dbsize()]).toEqual([0, new Set(['refused']), 0]);
      expect(events()).toEqual(['redis.failed']);
      expect(logged()[0]!.error!.message).toMatch(/DB index is out of range/);
    } finally {
      admin.disconnect();
      await server.stop();
    }
  });

  it('tells once where the server has no room for one more, and once when it has', async () => {
    const server = await startPrivateRedis();
    const admin = new Redis(server.redis.url);
    try {
      await admin.config('SET', 'maxclients', '1');
      redis = openRedis(server.redis.url);
      await failedTries(3);
      expect(events()).toEqual(['redis.failed']);
      await admin.config('SET', 'maxclients', '10');
      await writesAgain();
      expect(events()).toEqual(['redis.failed', 'redis.connected']);
    } finally {
      admin.disconnect();
      await server.stop();
    }
  });

  it.each([
    ['it has no room', 'ERR max number of clients reached', ''],
    ['it is in protected mode', 'DENIED Redis is running in protected mode', '. In this mode connections are …'],
  ])('tells why where the server says before it closes that %s', async (_, why, more) => {
    // A real one closes at once: where that comes before the first command is written, nothing can be read any more.
    const server = createTcpServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.end(`-${why}${more}\r\n`)),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      redis = openRedis(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`);
      await failedTries(2);
      expect(logged().map(({ error }) => error!.message)).toEqual([why]);
    } finally {
      redis.disconnect();
      server.close();
    }
  });

  it('tells once that it is closed by a port that expects TLS', async () => {
    const { key, certificate: cert } = makeCertificate('redis.example');
    const server = createTlsServer({ key, cert }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      redis = openRedis(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`);
      await failedTries(5);
      expect(events()).toEqual(['redis.failed']);
      expect(logged()[0]!.error!.message).toMatch(/ECONNRESET|EPIPE|closed/);
    } finally {
      redis.disconnect();
      server.close();
    }
  });

  it('tells that the server has closed it, and that it is there again', async () => {
    const server = await startPrivateRedis();
    const admin = new Redis(server.redis.url);
    try {
      redis = openRedis(server.redis.url);
      await writesAgain();
      await admin.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await eventually(() => events().length >= 3, 'the next connection');
      expect(events()).toEqual(['redis.connected', 'redis.failed', 'redis.connected']);
    } finally {
      admin.disconnect();
      await server.stop();
    }
  });

  it('is given up once where no answer comes any more, however many pings fail until it has ended', async () => {
    const server = await startPrivateRedis();
    const proxy = await TcpProxy.start(server.redis.url);
    try {
      redis = openRedis(proxy.url, { pingEvery: 20, silentAfter: 3000 });
      await writesAgain();
      const givenUp = vi.spyOn(redis, 'disconnect');
      let isSilent = false;
      proxy.holdUpFrom((bytes) => !isSilent && bytes.includes('ping') && (isSilent = true)); // one connection alone
      await eventually(() => events().includes('redis.failed'), 'its end');
      expect(givenUp).toHaveBeenCalledTimes(1);
    } finally {
      redis.disconnect();
      await proxy.cut();
      await server.stop();
    }
  });

  it('is replaced where no answer comes any more, in a process that gives no locks too', async () => {
    const server = await startPrivateRedis();
    const proxy = await TcpProxy.start(server.redis.url);
    try {
      redis = openRedis(proxy.url, { pingEvery: 20, silentAfter: 100 });
      await writesAgain();
      let isSilent = false;
      proxy.holdUpFrom((bytes) => !isSilent && bytes.includes('ping') && (isSilent = true)); // one connection alone
      await eventually(() => events().length >= 3, 'the next connection');
      expect(events().slice(0, 3)).toEqual(['redis.connected', 'redis.failed', 'redis.connected']);
      expect(logged()[1]!.error!.message).toMatch(/^no answer for \d+ s/);
      await writesAgain();
    } finally {
      redis.disconnect();
      await proxy.cut();
      await server.stop();
    }
  });
});
