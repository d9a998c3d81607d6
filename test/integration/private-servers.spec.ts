import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from 'amqplib';
import { Redis } from 'ioredis';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { accepts } from '../../scripts/private-servers/private-server.mjs';
import { startPrivateServers, type PrivateServers } from '../../scripts/private-servers.mjs';
import { createDatabase, queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { createRedisDatabase } from '../support/redis.js';

const program = fileURLToPath(new URL('../../scripts/private-servers.mjs', import.meta.url));

describe('private servers', () => {
  let servers: PrivateServers;

  beforeAll(async () => {
    servers = await startPrivateServers();
  });

  afterAll(() => servers.stop());

  it('keep what PostgreSQL committed when it is killed', async () => {
    const database = await createDatabase(servers.postgres.url);
    await queryOnce(database.url, 'CREATE TABLE kept AS SELECT 42 AS number');
    const before = servers.postgres.pid;
    await servers.postgres.kill9();
    await expect(queryOnce(database.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
    await servers.postgres.start();
    expect(servers.postgres.pid).not.toBe(before);
    expect(await queryOnce(database.url, 'SELECT number FROM kept')).toEqual([{ number: 42 }]);
    await database.drop();
  });

  it('forget everything when they are wiped', async () => {
    const { url } = await createRedisDatabase(servers.redis.url);
    await withRedis(url, (client) => client.set('kept', 'once'));
    await servers.redis.restart();
    expect(await withRedis(url, (client) => client.get('kept'))).toBe('once');
    await servers.redis.wipe();
    expect(await withRedis(url, (client) => client.get('kept'))).toBeNull();
  });

  it('give RabbitMQ the project’s own configuration', async () => {
    const connection = await connect(servers.rabbitmq.url);
    // The server proposes this when a connection is opened; rabbitmq.conf sets it, the default is 60.
    expect((connection.connection as unknown as { heartbeat: number }).heartbeat).toBe(20);
    await connection.close();
  });
});

describe('the servers of a run', () => {
  it.each(['SIGINT', 'SIGKILL'] as const)('end when the run gets %s', async (signal) => {
    const run = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'ignore'] });
    const ports = await printedPorts(run);
    for (const port of ports) expect(await accepts(port)).toBe(true);
    run.kill(signal);
    await once(run, 'exit');
    await eventually(async () => !(await anyAccepts(ports)), 'all servers to be gone');
  });
});

async function withRedis<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url);
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

async function printedPorts(run: ChildProcess): Promise<number[]> {
  const ports: number[] = [];
  for await (const line of createInterface({ input: run.stdout! })) {
    ports.push(Number(new URL(line.split('=')[1] ?? '').port));
    if (ports.length === 3) return ports;
  }
  throw new Error('It ended before it had printed where its servers are.');
}

async function anyAccepts(ports: number[]): Promise<boolean> {
  return (await Promise.all(ports.map((port) => accepts(port)))).includes(true);
}
