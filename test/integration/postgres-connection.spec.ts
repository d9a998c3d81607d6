import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { Socket } from 'node:net';
import { readSettings } from '../../src/config/settings.js';
import { examine } from '../../src/doctor/examine.js';
import { advisoryLocks } from '../../src/infra/postgres/advisory-locks.js';
import { inMigrationTurn } from '../../src/infra/postgres/migration-turn.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { isNotConnected, isUnavailable } from '../../src/infra/postgres/postgres-errors.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { createDatabase, queryOnce, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { TcpProxy } from '../support/tcp-proxy.js';

Logger.overrideLogger(false);

const select = statement('select', 'SELECT 1 AS one');
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the connection to Postgres', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let postgres: Postgres;

  beforeEach(async () => {
    database = await createDatabase();
    proxy = await TcpProxy.start(database.url);
    postgres = await Postgres.open(readSettings({ DATABASE_URL: proxy.url, DATABASE_TIMEOUT: '1' }), []);
  });

  afterEach(async () => {
    await postgres.close();
    await proxy.cut();
    await database.drop();
  });

  it('may be lost in a transaction: that fails, the process lives on, and the next gets another connection', async () => {
    const transaction = postgres.transaction(async (query) => {
      await query(select);
      await proxy.cut(); // no statement is running now, so only the connection itself can report it
      await eventually(() => proxy.openConnections === 0);
      return query(select);
    });
    await expect(transaction).rejects.toThrow(/Connection terminated|ECONNRESET|not queryable/);
    await proxy.restore();
    expect(await postgres.transaction((query) => query(select))).toEqual([{ one: 1 }]);
  });

  it('may freeze: the statement fails in good time, and the next gets another connection', async () => {
    await postgres.query(select);
    proxy.holdUp();
    await expect(postgres.query(select)).rejects.toThrow('Query read timeout');
    await proxy.cut();
    await proxy.restore();
    expect(await postgres.query(select)).toEqual([{ one: 1 }]);
  });

  it('is kept alive where a statement may be silent for minutes, or the connection itself', async () => {
    const setting = vi.spyOn(Socket.prototype, 'setKeepAlive');
    try {
      const own = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
      try {
        const port = 'SELECT inet_client_port() AS port';
        const used = [
          await own.query(statement('port', port)),
          await own.upkeep.query(port),
          await own.checks.query(port),
        ] as [{ port: number }][];
        const isKept = ({ port }: { port: number }) =>
          setting.mock.contexts.some(
            (socket, nr) => (socket as Socket).localPort === port && setting.mock.calls[nr]!.join() === 'true,60000',
          );
        expect(used.map(([row]) => isKept(row))).toEqual([true, true, true]);
      } finally {
        await own.close();
      }
    } finally {
      setting.mockRestore();
    }
  });

  it('may be lost while a transaction waits for an answer', async () => {
    const sleeping = statement('sleeping', 'SELECT pg_sleep(60)');
    const patient = await Postgres.open(readSettings({ DATABASE_URL: proxy.url, DATABASE_TIMEOUT: '60' }), []);
    try {
      const transaction = patient.transaction((query) => query(sleeping));
      const ended = transaction.catch((error: unknown) => error);
      const asleep = `SELECT FROM pg_stat_activity
        WHERE query LIKE 'SELECT pg_sleep%' AND datname = current_database() AND state = 'active'`;
      await eventually(async () => (await queryOnce(database.url, asleep)).length === 1);
      await proxy.cut();
      expect(String(await ended)).toMatch(/Connection terminated|ECONNRESET/);
      await proxy.restore();
      expect(await patient.transaction((query) => query(select))).toEqual([{ one: 1 }]);
    } finally {
      await patient.close();
    }
  });

  it('is known not to have come about where a proxy accepts it, and then closes it because its server is away', async () => {
    const way = await TcpProxy.start('postgres://nobody@127.0.0.1:1/nowhere');
    const { port } = new URL(way.url);
    const away = Object.assign(new URL(database.url), { port }).href;
    const started = await failureOf(Postgres.open(readSettings({ DATABASE_URL: away }), []));
    const [found] = await examine({ DATABASE_URL: away }).then((all) => all.filter(({ name }) => name === 'postgres'));
    await way.cut();
    expect(String(started)).toMatch(/closes them at once\. A proxy whose Postgres is away does that/);
    expect(found).toMatchObject({ verdict: 'failed', advice: expect.stringContaining('closes them at once') });
  });

  it('is known not to have come about where it ends before it has its settings, and not where it ends later', async () => {
    const settings = new RegExp('SET enable_seqscan');
    proxy.onClientData = (bytes) => void (settings.test(bytes.toString('latin1')) && proxy.cut());
    const before = await failureOf(postgres.query(select));
    proxy.onClientData = undefined;
    await proxy.restore();
    await postgres.query(select);
    proxy.onClientData = (bytes) => void (bytes.includes('select') && proxy.cut());
    const later = await failureOf(postgres.query(select));
    expect([before, later].map(isUnavailable)).toEqual([true, true]);
    expect([before, later].map(isNotConnected)).toEqual([true, false]);
  });

  it('has the style of dates and of texts and the isolation that the statements are written for, whatever the database was given', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await queryOnce(database.url, `ALTER DATABASE ${name} SET datestyle = 'German'`);
    await queryOnce(database.url, `ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    await queryOnce(database.url, `ALTER DATABASE ${name} SET standard_conforming_strings = off`);
    const own = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    const text = String.raw`SELECT 'epoch'::timestamptz AS epoch, current_setting('transaction_isolation') AS isolation, 'a\b' AS path`;
    const found = [
      await own.query(statement('settings', text)),
      await own.dataSource.query(text),
      await own.upkeep.query(text),
    ];
    await own.close();
    const expected = [{ epoch: new Date(0), isolation: 'read committed', path: String.raw`a\b` }];
    expect(found).toEqual([expected, expected, expected]);
  });

  it('is ended neither between two uses nor in a long transaction, whatever time limits the database was given', async () => {
    const limits = `SELECT name, setting FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout') ORDER BY name`;
    await queryOnce(
      database.url,
      `DO $$ DECLARE known text; BEGIN
         FOR known IN SELECT name FROM (${limits}) AS limits LOOP
           EXECUTE format('ALTER DATABASE %I SET %I = %L', current_database(), known, '1s');
         END LOOP;
       END $$`,
    );
    const given = await queryOnce<{ name: string; setting: string }>(database.url, limits);
    expect(given).toContainEqual({ name: 'idle_session_timeout', setting: '1000' });
    const own = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    try {
      const none = given.map(({ name }) => ({ name, setting: '0' }));
      expect(await own.query(statement('limits', limits))).toEqual(none);
      for (const source of [own.dataSource, own.upkeep, own.checks]) expect(await source.query(limits)).toEqual(none);
      const turns = `SELECT (now() - state_change > interval '1.3 s')::text AS is_long FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND objid = ${advisoryLocks.migrations} AND datname = current_database()`;
      const turn = () => queryOnce<{ is_long: string }>(database.url, turns);
      await inMigrationTurn(own.upkeep, async () => {
        await eventually(async () => (await turn()).every(({ is_long }) => is_long === 'true'), 'idle for that long');
        expect(await turn()).toHaveLength(1);
      });
    } finally {
      await own.close();
    }
  });
});
