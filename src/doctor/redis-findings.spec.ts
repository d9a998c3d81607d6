import { describe, expect, it } from 'vitest';
import { Redis } from 'ioredis';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { startPrivateRedis } from '../../scripts/private-servers.mjs';
import { makeCertificate } from '../../test/support/certificates.js';
import { readSettings } from '../config/settings.js';
import { examineInfo, examineRedis } from './redis-findings.ioredis.js';

const well = {
  redis_version: '7.2.4',
  role: 'master',
  redis_mode: 'standalone',
  cluster_enabled: '0',
  loading: '0',
  used_memory: '1000000',
  maxmemory: '100000000',
  maxmemory_policy: 'noeviction',
};

const verdicts = (changed: Partial<typeof well>) =>
  examineInfo(new Map(Object.entries({ ...well, ...changed }))).map(({ name, verdict }) => `${name} ${verdict}`);

describe('Redis', () => {
  it('is well as Heraut needs it', () => {
    expect(verdicts({})).toEqual(['redis ok', 'redis-memory ok']);
  });

  it.each([
    [{ redis_version: '6.2.1' }, 'redis failed'],
    [{ role: 'slave' }, 'redis failed'],
    [{ cluster_enabled: '1' }, 'redis failed'],
    [{ redis_mode: 'sentinel' }, 'redis failed'],
    [{ redis_mode: 'sentinel' }, 'redis-memory skipped'],
    [{ loading: '1' }, 'redis warning'],
    [{ maxmemory_policy: 'allkeys-lru' }, 'redis-memory failed'],
    [{ maxmemory: '0' }, 'redis-memory warning'],
    [{ used_memory: '95000000' }, 'redis-memory warning'],
  ])('is told when INFO says %j', (changed, verdict) => {
    expect(verdicts(changed)).toContain(verdict);
  });
});

describe('a Redis that lets nobody in', () => {
  it('is not taken for one that is away: the password is wrong, or missing', async () => {
    const { redis, stop } = await startPrivateRedis();
    const { host } = new URL(redis.url);
    const admin = new Redis(redis.url);
    await admin.config('SET', 'requirepass', 'secret');
    admin.disconnect();
    const look = async (url: string) => (await examineRedis(readSettings({ REDIS_URL: url })))[0];
    const advice = 'The user or the password in REDIS_URL is wrong, or missing.';
    try {
      expect(await look(`redis://${host}`)).toMatchObject({ found: expect.stringContaining('NOAUTH'), advice });
      expect(await look(`redis://:wrong@${host}`)).toMatchObject({
        found: expect.stringContaining('WRONGPASS'),
        advice,
      });
      expect(await look(`redis://:secret@${host}`)).toMatchObject({ verdict: 'ok' });
      await redis.stop();
      expect(await look(redis.url)).toMatchObject({
        found: expect.stringContaining('ECONNREFUSED'),
        advice: expect.stringContaining('Is Redis running'),
      });
    } finally {
      await stop();
    }
  });
});

describe('a Redis that cannot be used as REDIS_URL says', () => {
  const look = async (url: string) => (await examineRedis(readSettings({ REDIS_URL: url })))[0];

  it('has no database of that number: database 0 is not looked at in its place', async () => {
    const { redis, stop } = await startPrivateRedis();
    try {
      expect(await look(`${redis.url}/15`)).toMatchObject({ verdict: 'ok' });
      expect(await look(`${redis.url}/99999`)).toMatchObject({
        verdict: 'failed',
        found: expect.stringContaining('DB index is out of range'),
        advice: expect.stringContaining('no database of the number at the end of REDIS_URL'),
      });
    } finally {
      await stop();
    }
  });

  it('is a cluster, which has no databases to choose from: the number is not to blame', async () => {
    const { redis, stop } = await startPrivateRedis({ isCluster: true });
    try {
      expect(await look(`${redis.url}/3`)).toMatchObject({
        verdict: 'failed',
        found: expect.stringContaining('a cluster'),
        advice: expect.stringContaining('needs one server'),
      });
    } finally {
      await stop();
    }
  });

  it.each([
    [
      'is a Sentinel, which knows no SELECT',
      (command: string) =>
        command === 'info' ? '$20\r\nredis_mode:sentinel\n\r\n' : `-ERR unknown command '${command}'\r\n`,
      { found: expect.stringContaining('a Sentinel'), advice: expect.stringContaining('asks no Sentinel') },
    ],
    [
      'has no room for one more connection',
      () => undefined,
      { found: 'ERR max number of clients reached', advice: expect.stringContaining('maxclients') },
    ],
  ])('%s: the number is not to blame', async (_, answerTo: (command: string) => string | undefined, expected) => {
    const server = createTcpServer((socket) =>
      socket
        .on('error', () => {})
        .on('data', (bytes) => {
          const commands = [...bytes.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)].map(([, name]) =>
            answerTo(name!),
          );
          if (commands.includes(undefined)) socket.end('-ERR max number of clients reached\r\n');
          else socket.write(commands.join(''));
        }),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}/3`;
      expect(await look(url)).toMatchObject({ verdict: 'failed', ...expected });
    } finally {
      server.close();
    }
  });

  it('has a certificate that is not trusted, or a port that expects TLS', async () => {
    const { key, certificate: cert } = makeCertificate('redis.example', { hosts: ['127.0.0.1'] });
    const server = createServer({ key, cert }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(await look(`rediss://127.0.0.1:${port}`)).toMatchObject({
        found: expect.stringContaining('SELF_SIGNED_CERT'),
        advice: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      });
      const advice = expect.stringContaining('rediss:// with TLS');
      expect(await look(`redis://127.0.0.1:${port}`)).toMatchObject({ verdict: 'failed', advice });
    } finally {
      server.close();
    }
  });
});

describe('a Redis that does not let its user do everything', () => {
  it('is well with what running.md names, and not without a command that locks need, from within a script or not', async () => {
    const { redis, stop } = await startPrivateRedis();
    const { host } = new URL(redis.url);
    const admin = new Redis(redis.url);
    const look = async () => (await examineRedis(readSettings({ REDIS_URL: `redis://heraut:secret@${host}` })))[0];
    const page = readFileSync(new URL('../../docs/running.md', import.meta.url), 'utf8');
    const documented = /ACL SETUSER heraut (.*)/.exec(page)![1]!.replaceAll("'", '').replace('PASSWORD', 'secret');
    try {
      await admin.acl('SETUSER', 'heraut', ...documented.split(/\s+/));
      expect(await look()).toMatchObject({ verdict: 'ok' });
      expect(await admin.keys('*')).toEqual([]);
      const refused: string[] = [];
      for (const command of ['eval', 'pexpire', 'exists', 'info']) {
        await admin.acl('SETUSER', 'heraut', `-${command}`);
        const { verdict, advice = '' } = (await look())!;
        if (verdict === 'failed' && advice.includes('docs/running.md, Redis')) refused.push(command);
        await admin.acl('SETUSER', 'heraut', `+${command}`);
      }
      expect(refused).toEqual(['eval', 'pexpire', 'exists', 'info']);
    } finally {
      admin.disconnect();
      await stop();
    }
  });
});
