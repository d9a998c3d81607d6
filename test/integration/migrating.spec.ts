import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import pg from 'pg';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';

describe('a process that migrates', () => {
  let database: TestDatabase;
  let other: pg.Client;
  let postgres: Postgres;

  const open = (url = database.url) => Postgres.open(readSettings({ DATABASE_URL: url }), []);

  beforeEach(async () => {
    database = await createDatabase();
    postgres = await open();
    await postgres.migrate();
    other = new pg.Client({ connectionString: database.url });
    await other.connect();
  });
  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    await other.end();
    await postgres.close();
    await database.drop();
  });

  /** Whether a connection that migrates waits for a lock of this type. */
  const isWaiting = async (type: string) => {
    const waits = `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
                   WHERE application_name = 'heraut-upkeep' AND locktype = $1 AND NOT granted
                     AND datname = current_database()`;
    return (await other.query(waits, [type])).rowCount === 1;
  };

  const endConnections = () =>
    other.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE application_name = 'heraut-upkeep' AND datname = current_database()`);

  it('says every ten seconds that it waits, while another one does, and no more when that has ended', async () => {
    const warned = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    await other.query('SELECT pg_advisory_lock(727272)');
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const migrated = postgres.migrate();
    await eventually(() => isWaiting('advisory'));
    vi.advanceTimersByTime(20_000);
    const line = [{ event: 'postgres.migration-waits', for: 'another process to migrate' }];
    expect(warned.mock.calls).toEqual([line, line]);
    await other.query('SELECT pg_advisory_unlock(727272)');
    expect(await migrated).toEqual([]);
    vi.advanceTimersByTime(20_000);
    expect(warned).toHaveBeenCalledTimes(2);
  });

  it('waits its turn for a moment, or leaves the work to its next run, also where nothing is to be migrated', async () => {
    await other.query('SELECT pg_advisory_lock(727272)');
    expect(await postgres.migrateUnlessAnotherDoes(undefined, 1)).toBe(false);
    const migrated = postgres.migrateUnlessAnotherDoes(undefined, 600_000);
    await eventually(() => isWaiting('advisory'), 'it to wait');
    await other.query('SELECT pg_advisory_unlock(727272)');
    expect(await migrated).toBe(true);
    // On the same connections: it has let go of the turn, and its limit for a lock is the ordinary one again.
    expect(await other.query('SELECT pg_try_advisory_lock(727272) AS free')).toMatchObject({ rows: [{ free: true }] });
    expect(await postgres.upkeep.query('SHOW lock_timeout')).toEqual([{ lock_timeout: '1h' }]);
  });

  it('does not repeat a migration that another one has run meanwhile', async () => {
    const name = 'FindOwned1763625600046';
    await other.query('DELETE FROM migrations WHERE name = $1', [name]);
    vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const run = vi.spyOn(postgres.upkeep, 'transaction').mockImplementationOnce(async () => {
      await other.query('INSERT INTO migrations (timestamp, name) VALUES (1763625600046, $1)', [name]);
      throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' });
    });
    expect(await postgres.migrate()).toEqual([]);
    expect(run).toHaveBeenCalledTimes(1);
  });

  it('fails with what Postgres said, where its connections are ended while it migrates', async () => {
    await other.query('BEGIN; LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE');
    const failure = postgres.migrate().catch(String);
    await eventually(() => isWaiting('relation'));
    await endConnections();
    expect(await failure).toMatch(/Postgres cannot be used: .*terminat/);
  });

  it('fails with what Postgres said, where its connection is ended while it waits for another one', async () => {
    await other.query('SELECT pg_advisory_lock(727272)');
    const failure = postgres.migrate().catch(String);
    await eventually(() => isWaiting('advisory'));
    await endConnections();
    expect(await failure).toMatch(/Postgres cannot be used: .*terminat/);
  });

  it('leaves nothing running and locked in Postgres when it is gone while a statement takes long', async () => {
    const runner = postgres.upkeep.createQueryRunner();
    const client = (await runner.connect()) as pg.PoolClient & { connection: { stream: Socket } };
    const [{ pid }] = (await runner.query('SELECT pg_backend_pid() AS pid')) as [{ pid: number }];
    const cut = runner.query('BEGIN; LOCK TABLE catalogue; SELECT pg_sleep(3600)').catch(String);
    const holds = `SELECT FROM pg_locks WHERE pid = $1 AND relation = 'catalogue'::regclass AND granted`;
    const isHeld = async () => (await other.query(holds, [pid])).rowCount === 1;
    await eventually(isHeld, 'the lock to be held');
    client.connection.stream.destroy();
    await cut;
    await eventually(async () => !(await isHeld()), 'the lock to be gone');
    await runner.release();
  });

  it('is asked after by Postgres within a minute, where its machine may have vanished', async () => {
    const shown = `SELECT current_setting('tcp_keepalives_idle') AS idle, current_setting('tcp_keepalives_interval') AS
                   interval, current_setting('tcp_keepalives_count') AS count`;
    expect(await postgres.upkeep.query(shown)).toEqual([{ idle: '30', interval: '10', count: '3' }]);
  });

  it('gives each table a primary key: without one Postgres changes no row of a table that is published', async () => {
    await other.query('CREATE PUBLICATION everything FOR ALL TABLES');
    const { rows } = await other.query<{ relname: string }>(
      `SELECT relname FROM pg_class
       WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND relnamespace = current_schema()::regnamespace
         AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = pg_class.oid AND indisprimary)`,
    );
    expect(rows).toEqual([]);
    const listened = await other.query('UPDATE live_listener SET expires_at = now()');
    expect(listened.rowCount).toBe(1);
  });

  it('advises to give the tables to its user, where they are those of another, whatever it may do with them', async () => {
    const role = `restored_${randomUUID().slice(0, 8)}`;
    await other.query(`CREATE ROLE ${role} LOGIN`);
    try {
      await other.query(`GRANT USAGE, CREATE ON SCHEMA public TO ${role}`);
      const url = Object.assign(new URL(database.url), { username: role }).href;
      const failure = async () => {
        const limited = await open(url);
        const failed = await limited.migrate().then(() => 'It did not fail.', String);
        await limited.close();
        return failed;
      };
      expect(await failure()).toMatch(/42P07: relation "migrations" already exists\. .*ALTER TABLE … OWNER TO/);
      // As long as nothing is to be migrated, rights are enough.
      await other.query(`GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`);
      expect(await failure()).toBe('It did not fail.');
      await other.query("DELETE FROM migrations WHERE name LIKE 'CountClaimed%'");
      expect(await failure()).toMatch(/42501: must be owner of .*ALTER TABLE … OWNER TO/);
    } finally {
      await other.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });
});
