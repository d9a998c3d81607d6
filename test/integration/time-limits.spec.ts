import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { register } from 'prom-client';
import type { EntityManager } from 'typeorm';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { isUnavailable } from '../../src/infra/postgres/postgres-errors.js';
import { Postgres, type Query } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { perDay } from '../../src/ledger/per-day.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';

/** A third of it is left between the limit of a lock and that of a statement, for a busy machine. */
const timeoutSeconds = 1.8;
const sleep = statement('sleep', 'SELECT pg_sleep(30)');
const one = statement('one', 'SELECT 1 AS one, pg_backend_pid() AS pid');
const raise = statement('raise', 'UPDATE catalogue SET version = version + 1');
const raiseOwn = statement('raise-own', `UPDATE process SET roles = roles || '{api}' WHERE id = 'own'`);

const logged: Record<string, unknown>[] = [];

describe('the time limits of Postgres', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let postgres: Postgres;

  beforeAll(async () => {
    Logger.overrideLogger({
      log: () => {},
      error: () => {},
      warn: (event: Record<string, unknown>) => void logged.push(event),
    });
    database = await createDatabase();
    proxy = await TcpProxy.start(database.url);
    postgres = await open(proxy.url, timeoutSeconds);
    await postgres.migrate();
    await postgres.dataSource.query(`INSERT INTO process (id, roles, expires_at) VALUES ('own', '{}', now())`);
  });
  afterAll(async () => {
    await postgres.close();
    await proxy.cut();
    await database.drop();
    Logger.overrideLogger(false);
  });
  beforeEach(() => {
    proxy.letGo();
    logged.length = 0;
  });

  const open = (url: string, seconds: number) =>
    Postgres.open(readSettings({ DATABASE_URL: url, DATABASE_POOL_SIZE: '2', DATABASE_TIMEOUT: String(seconds) }), []);

  /** Waits as long as a statement may take, and more than that. */
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );

  /** Does `work` while another transaction keeps what `lock` locks. */
  async function whileHeld<T>(lock: string, work: () => Promise<T>): Promise<T> {
    let letGo: (() => void) | undefined;
    const holder = postgres.upkeep.transaction(async (manager: EntityManager) => {
      await manager.query(lock);
      await new Promise<void>((resolve) => (letGo = resolve));
    });
    await eventually(() => letGo, 'the lock to be held');
    try {
      return await work();
    } finally {
      letGo!();
      await holder;
    }
  }

  async function timesCounted(name: string, limit: string): Promise<number> {
    const { values } = await register.getSingleMetric('heraut_postgres_statements_timed_out_total')!.get();
    return values.find(({ labels }) => labels.statement === name && labels.limit === limit)?.value ?? 0;
  }

  async function sleeping(): Promise<number> {
    const rows = await postgres.upkeep.query<unknown[]>(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT pg_sleep(30)%'`,
    );
    return rows.length;
  }

  it('end a statement on the server, which is named and counted, and its connection goes on', async () => {
    const [before] = await Promise.all([postgres.query(one), timesCounted('sleep', 'statement')]);
    const counted = await timesCounted('sleep', 'statement');
    const failure = await failureOf(postgres.query(sleep));
    expect(isUnavailable(failure)).toBe(true);
    expect(failure).toMatchObject({ code: '57014' });
    // The server answers a moment before pg_stat_activity shows the connection as idle.
    await eventually(async () => (await sleeping()) === 0);
    expect(await timesCounted('sleep', 'statement')).toBe(counted + 1);
    expect(logged).toMatchObject([
      { event: 'postgres.statement-timed-out', statement: 'sleep', limit: 'statement', limitMs: 1800 },
    ]);
    expect(await postgres.query(one)).toEqual(before);
  });

  it('end a statement inside a transaction likewise, and undo the transaction', async () => {
    const read = statement('read', 'SELECT version FROM catalogue');
    const before = await postgres.query(read);
    // More than the others have: so long may this process say nothing between two statements, too.
    const pool = await open(proxy.url, 4);
    const work = pool.transaction(async (query) => {
      await query(raise);
      await query(sleep);
    });
    expect(await failureOf(work)).toMatchObject({ code: '57014' });
    expect(logged).toMatchObject([{ statement: 'sleep', limit: 'statement' }]);
    await pool.close();
    expect(await postgres.query(read)).toEqual(before);
  });

  it('name a statement that has a text for each day by its one name, outside a transaction and inside', async () => {
    const counted = await timesCounted('sleep-of-day', 'statement');
    const ofDay = perDay('sleep-of-day', (of) => `SELECT pg_sleep(30), '${of('delivery')}'`);
    const failures = [
      await failureOf(postgres.query(ofDay(20_000))),
      await failureOf(postgres.transaction((query) => query(ofDay(20_001)))),
    ];
    expect(failures.map(isUnavailable)).toEqual([true, true]);
    expect(logged.map(({ statement: name }) => name)).toEqual(['sleep-of-day', 'sleep-of-day']);
    expect(await timesCounted('sleep-of-day', 'statement')).toBe(counted + 2);
  });

  it('hold for TypeORM’s statements too, which are logged by their text', async () => {
    const failure = await failureOf(postgres.dataSource.query('SELECT pg_sleep(30), $1::text', ['a secret']));
    expect(isUnavailable(failure)).toBe(true);
    expect(logged).toMatchObject([
      { event: 'postgres.statement-timed-out', statement: 'other', text: 'SELECT pg_sleep(30), $1::text' },
    ]);
    expect(JSON.stringify(logged)).not.toContain('a secret');
  });

  it('end the waiting for a lock before the statement’s own limit, so that the log says which it was', async () => {
    const failures = await whileHeld(raise.text, async () => [
      await failureOf(postgres.query(raise)),
      await failureOf(postgres.dataSource.query(raise.text)),
    ]);
    expect(failures.map(isUnavailable)).toEqual([true, true]);
    expect(logged).toMatchObject([
      { statement: 'raise', limit: 'lock', limitMs: 1200 },
      { statement: 'other', limit: 'lock' },
    ]);
  });

  it('end a look at migrations, which gives back the only connection of health checks', async () => {
    const failure = await whileHeld('LOCK TABLE migrations IN ACCESS EXCLUSIVE MODE', () =>
      failureOf(postgres.hasPendingMigrations()),
    );
    expect(isUnavailable(failure)).toBe(true);
    await postgres.tryWriting();
    expect(await postgres.hasPendingMigrations()).toBe(false);
  });

  it('end a transaction whose process says nothing more, and free its rows', async () => {
    const silent = postgres.transaction(async (query) => {
      await query(raise);
      // Nothing is said until the row is free again, which it is only once the server has ended this transaction.
      await eventually(async () => !(await failureOf(postgres.query(raise))), 'the row to be free');
      await query(one);
    });
    expect(isUnavailable(await failureOf(silent))).toBe(true);
    expect(await postgres.query(one)).toHaveLength(1);
  });

  it('give up on a server that is frozen, a little later, and close the connection: nothing waits behind it', async () => {
    // As many connections as are used below.
    await Promise.all([postgres.query(one), postgres.query(one), postgres.dataSource.query(one.text)]);
    const counted = await timesCounted('one', 'answer');
    proxy.holdUp();
    const failures = await Promise.all([
      failureOf(postgres.query(one)),
      failureOf(postgres.transaction((query) => query(one))),
      failureOf(postgres.dataSource.query(one.text)),
    ]);
    expect(failures.map(isUnavailable)).toEqual([true, true, true]);
    expect(await timesCounted('one', 'answer')).toBe(counted + 1);
    const limits = logged.map(({ statement: name, limit }) => `${String(name)} ${String(limit)}`);
    expect(limits.toSorted()).toEqual(['BEGIN answer', 'one answer', 'other answer']);
    proxy.letGo();
    expect(await Promise.all([postgres.query(one), postgres.dataSource.query(one.text)])).toHaveLength(2);
  });

  it('are those of each kind of connection, and so is its name, whatever the options of DATABASE_URL say', async () => {
    const options = '-c statement_timeout=7 -c lock_timeout=7 -c application_name=other';
    const pool = await open(`${database.url}?options=${encodeURIComponent(options)}`, timeoutSeconds);
    const shown = `SELECT current_setting('statement_timeout') AS most, current_setting('application_name') AS name`;
    const heraut = { most: '1800ms', name: 'heraut' };
    for (const source of [pool.dataSource, pool.checks]) expect(await source.query(shown)).toEqual([heraut]);
    expect(await pool.query(statement('shown', shown))).toEqual([heraut]);
    expect(await pool.upkeep.query(shown)).toEqual([{ most: '1h', name: 'heraut-upkeep' }]);
    await pool.close();
  });

  it('leave migrations and partitions the time they need', async () => {
    const pool = await open(database.url, 0.5);
    await pool.upkeep.query('SELECT pg_sleep(2)');
    let migrated: Promise<string[]> | undefined;
    await whileHeld('SELECT pg_advisory_xact_lock(727272)', async () => {
      migrated = pool.migrate();
      await postgres.upkeep.query('SELECT pg_sleep(2)');
    });
    expect(await migrated).toEqual([]);
    await pool.close();
  });
});

describe('a deadlock', () => {
  let database: TestDatabase;
  let postgres: Postgres;
  let catalogue: Catalogue;

  beforeAll(async () => {
    database = await createDatabase();
    // Waiting for a lock outlasts the patience of both, so that each deadlock is found, by one of them.
    const settings = readSettings({ DATABASE_URL: database.url, DATABASE_TIMEOUT: '60' });
    postgres = await Postgres.open(settings, []);
    await postgres.migrate();
    await postgres.dataSource.query(`INSERT INTO process (id, roles, expires_at) VALUES ('own', '{}', now())`);
    catalogue = new Catalogue(postgres);
  });
  afterAll(async () => {
    await postgres.close();
    await database.drop();
  });

  const ownRoles = async () => {
    const rows = await postgres.dataSource.query<{ roles: string[] }[]>(`SELECT roles FROM process WHERE id = 'own'`);
    return rows[0]!.roles.length;
  };

  /** The one that is `patient` looks for deadlocks after the other, so Postgres ends the other. */
  const patience = (isPatient: boolean) => `SET LOCAL deadlock_timeout = '${isPatient ? '10s' : '10ms'}'`;

  /**
   * Postgres looks once for a deadlock: if the other one does not wait by then, it ends neither before a lock's time is
   * over.
   */
  const otherWaits = () =>
    eventually(async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return (await postgres.dataSource.query<object[]>(waiting)).length > 0;
    }, 'the other one to wait');

  it.each(['the transaction', 'the change of the catalogue'])('is repeated where it ends %s', async (victim) => {
    const before = { version: catalogue.version, roles: await ownRoles() };
    await catalogue.refresh();
    const tries = { transaction: 0, change: 0 };
    const locked = { transaction: () => {}, change: () => {} };
    const both = Promise.all([
      new Promise<void>((resolve) => (locked.transaction = resolve)),
      new Promise<void>((resolve) => (locked.change = resolve)),
    ]);
    const transaction = postgres.transaction(async (query: Query) => {
      tries.transaction++;
      await query(statement(`patience-${victim}`, patience(victim !== 'the transaction')));
      await query(raiseOwn);
      locked.transaction();
      await both;
      if (victim === 'the transaction' && tries.transaction === 1) await otherWaits();
      await query(raise);
    });
    const change = catalogue.change(async (manager) => {
      tries.change++;
      await manager.query(patience(victim === 'the transaction'));
      locked.change();
      await both;
      if (victim !== 'the transaction' && tries.change === 1) await otherWaits();
      await manager.query(raiseOwn.text);
    });
    await Promise.all([transaction, change]);
    // Its repetition may get its first row before the other one, which was woken for it: that is another deadlock,
    // which may end either.
    expect(tries[victim === 'the transaction' ? 'transaction' : 'change']).toBeGreaterThan(1);
    await catalogue.refresh();
    expect(await ownRoles()).toBe(before.roles + 2);
    expect(catalogue.version).toBeGreaterThanOrEqual(before.version + 2);
  });

  it('does not end a migration, which is run again', async () => {
    const deadlock = Object.assign(new Error('deadlock detected'), { code: '40P01' });
    const name = 'FindOwned1763625600046';
    await postgres.upkeep.query('DROP INDEX subscription_owned');
    await postgres.upkeep.query('DELETE FROM migrations WHERE name = $1', [name]);
    const run = vi.spyOn(postgres.upkeep, 'transaction').mockRejectedValueOnce(deadlock);
    expect(await postgres.migrate()).toEqual([name]);
    expect(run).toHaveBeenCalledTimes(2);
    run.mockRestore();
  });

  it('is repeated a few times only', async () => {
    let tries = 0;
    const always = postgres.transaction(async (query) => {
      tries++;
      await query(statement('deadlock', `DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$`));
    });
    await expect(always).rejects.toMatchObject({ code: '40P01' });
    expect(tries).toBe(5);
  });
});
