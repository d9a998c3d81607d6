import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { createDatabase, queryOnce, type TestDatabase } from '../../test/support/database.js';
import { eventually } from '../../test/support/eventually.js';
import { TcpProxy } from '../../test/support/tcp-proxy.js';
import { testServers } from '../../test/support/test-servers.js';
import { readSettings } from '../config/settings.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { checkHealth } from './check-health.js';
import { migrationsHaveRun, postgresWorks, roleIsAlive } from './part-checks.js';

const pid = statement('pid', 'SELECT pg_backend_pid() AS pid');

describe('a process to which Postgres gives no more connections', () => {
  let database: TestDatabase;
  let role: string;
  let postgres: Postgres;
  let hotPid: number;

  const asOwner = (text: string) => queryOnce(database.url, text);
  const look = () => {
    const heartbeat = { hasExpired: false, isAlive: Heartbeat.prototype.isAlive, postgres } as unknown as Heartbeat;
    const checks = [
      postgresWorks(postgres, heartbeat),
      migrationsHaveRun(postgres),
      roleIsAlive(heartbeat, 'worker', 'nothing is delivered'),
    ];
    return checkHealth(checks, ['api'], 30_000, () => {});
  };
  /** Of the role's connections only that of the hot path is left, and it gets no other. */
  const leaveOne = async () => {
    const others = `FROM pg_stat_activity WHERE usename = '${role}' AND pid <> ${hotPid}`;
    await asOwner(`ALTER ROLE ${role} CONNECTION LIMIT 1`);
    await asOwner(`SELECT pg_terminate_backend(pid) ${others}`);
    await eventually(async () => (await asOwner(`SELECT ${others}`)).length === 0);
  };
  const seen = (health: object) =>
    eventually(async () => {
      expect(await look()).toMatchObject(health);
      return true;
    });
  const short = {
    status: 'degraded',
    parts: {
      postgres: { status: 'down', error: 'Postgres gives no more connections; those that are open go on' },
      migrations: { status: 'up' },
      worker: { status: 'up' },
    },
    down: ['postgres'],
  };

  beforeEach(async () => {
    database = await createDatabase();
    role = `short_${randomUUID().replaceAll('-', '')}`;
    const url = Object.assign(new URL(database.url), { username: role }).href;
    const owner = decodeURIComponent(new URL(testServers.databaseUrl()).username);
    await asOwner(`CREATE ROLE ${role} LOGIN IN ROLE "${owner}"`);
    postgres = await Postgres.open(readSettings({ DATABASE_URL: url, DATABASE_TIMEOUT: '60' }), []);
    await postgres.migrate();
    await asOwner(`INSERT INTO process (id, roles, expires_at) VALUES ('own', '{worker}', now() + interval '1 hour')`);
    hotPid = (await postgres.query<{ pid: number }>(pid))[0]!.pid;
  });
  afterEach(async () => {
    await postgres.close();
    await database.drop();
    await queryOnce(testServers.databaseUrl(), `DROP ROLE ${role}`);
  });

  it('is degraded and says so while its own accept, and ready again once there are more', async () => {
    expect(await look()).toMatchObject({ status: 'ready' });
    await leaveOne();
    await seen(short);
    await asOwner(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    expect(await look()).toMatchObject({ status: 'ready' });
  });

  it('waits for one of its own that is busy just then', async () => {
    await leaveOne();
    await seen(short);
    let looked: ReturnType<typeof look> | undefined;
    await postgres.transaction(async (query) => {
      looked = look();
      for (let nr = 0; nr < 5; nr++) await query(pid);
    });
    expect(await looked).toEqual(short);
  });

  it('is unavailable and says so where it has none at all', async () => {
    await asOwner(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
    await asOwner(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
    const error = 'Postgres gives no more connections';
    await seen({ status: 'unavailable', parts: { postgres: { error }, migrations: { error }, worker: { error } } });
    await expect(postgres.query(pid)).rejects.toMatchObject({ code: '53300' });
  });

  it('is unavailable where its own can only be read', async () => {
    await leaveOne();
    await postgres.query(statement('reading', 'SET default_transaction_read_only = on'));
    await seen({
      status: 'unavailable',
      parts: { postgres: { error: expect.stringContaining('it can only be read') } },
    });
  });
});

it('a Postgres behind a proxy that closes each connection at once is named as such by every part', async () => {
  const database = await createDatabase();
  const proxy = await TcpProxy.start(database.url);
  const postgres = await Postgres.open(readSettings({ DATABASE_URL: proxy.url }), []);
  try {
    await proxy.cut();
    await proxy.restore();
    proxy.onClientData = (_, server) => void server.destroy();
    const heartbeat = { hasExpired: false } as Heartbeat;
    const error = 'no connection to Postgres: it was closed at once';
    await eventually(async () => {
      const health = await checkHealth(
        [postgresWorks(postgres, heartbeat), migrationsHaveRun(postgres)],
        ['api'],
        30_000,
        () => {},
      );
      expect(health).toMatchObject({
        status: 'unavailable',
        parts: { postgres: { error }, migrations: { error } },
      });
      return true;
    });
  } finally {
    await postgres.close();
    await proxy.cut();
    await database.drop();
  }
});
