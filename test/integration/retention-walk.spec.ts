import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { startPrivatePostgres } from '../../scripts/private-servers.mjs';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { dateOf, lowestIdAt, partitionOf } from '../../src/ledger/partitions.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { beginWalk, findOlderSnapshot } from '../../src/retention/retention-days.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import { eventually } from '../support/eventually.js';
import type { TestLedger } from '../support/ledger.js';
import { dayMs, running, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { connectStandby } from '../support/standby.js';

Logger.overrideLogger(false);

const withVacuum = (postgres: Postgres, vacuum: (text: string) => Promise<unknown>): Postgres =>
  Object.create(postgres, { upkeep: { value: { query: vacuum } } }) as Postgres;
const withoutVacuumOf = (postgres: Postgres) => withVacuum(postgres, () => Promise.reject(new Error('no vacuum')));

describe.each(stacks)('the walk of retention on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let retention: TestRetention;
  let test: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    retention = await TestRetention.open(prepared.settings);
    ({ test } = retention);
  });
  beforeEach(() => retention.clear());
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  describe('a walk through a day', () => {
    const withoutVacuum = () => withoutVacuumOf(test.postgres);

    it('ends when nobody sees any more what it erased, and no channel that becomes due waits for that', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody else could see it
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 30 });
      const [key, other] = [
        await retention.add(at, 'delivered'),
        await retention.add(at, 'delivered', { channel: 'other' }),
      ];
      const unfinished = await retention.add(at, 'waiting');
      const reader = test.postgres.upkeep.createQueryRunner();
      await reader.startTransaction('REPEATABLE READ');
      try {
        await reader.query('SET LOCAL idle_in_transaction_session_timeout = 0'); // it is idle for all of the rounds
        await reader.query('SELECT FROM notification LIMIT 1');
        await retention.eraseOld();
        expect([await retention.bodyOf(key), await retention.bodyOf(other)]).toEqual([null, expect.any(String)]);
        const first = { walk_channels: ['cases'], bodies_erased: 1, bodies_kept: 1, bodies_erased_at: null };
        expect(await retention.report(at)).toMatchObject([first]);
        await retention.setDays({ other: 1 });
        await retention.fail(unfinished);
        for (let round = 0; round < 2; round++) {
          await retention.eraseOld();
          expect([await retention.bodyOf(other), await retention.bodyOf(unfinished)]).toEqual([null, null]);
          const both = { walk_channels: ['cases', 'other'], bodies_erased: 3, bodies_kept: 0, bodies_erased_at: null };
          expect(await retention.report(at)).toMatchObject([both]);
        }
      } finally {
        await reader.commitTransaction();
        await reader.release();
      }
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([
        {
          walk_channels: null,
          erased_channels: ['cases', 'other'],
          bodies_erased: 3,
          bodies_erased_at: expect.any(Date),
        },
      ]);
    });

    it('ends although somebody vacuums any table, by which nothing is kept', async () => {
      if (test.postgres.isEmbedded) return; // one connection
      const at = await retention.makeDay(9);
      await retention.add(at, 'delivered');
      await test.sql('CREATE TABLE large AS SELECT generate_series(1, 500000)');
      const other = new pg.Client({ connectionString: prepared.settings.DATABASE_URL });
      await other.connect();
      await other.query('SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1'); // minutes
      const vacuum = other.query('VACUUM large').catch((error: unknown) => error);
      const vacuuming = () =>
        test.sql<{ pid: number }>(`SELECT pid FROM pg_stat_progress_vacuum WHERE relid = 'large'::regclass`);
      try {
        await eventually(async () => (await vacuuming()).length === 1, 'the vacuum to be under way');
        await retention.eraseOld();
        expect(await retention.report(at)).toMatchObject([{ walk_channels: null, bodies_erased_at: expect.any(Date) }]);
        expect(await vacuuming()).toHaveLength(1);
      } finally {
        for (const { pid } of await vacuuming()) await test.sql('SELECT pg_cancel_backend($1)', [pid]);
        await vacuum;
        await other.end();
        await test.sql('DROP TABLE large');
      }
    });

    it('that waits for its end is begun anew for one more channel by one process, and by no other', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 30 });
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at }));
      await insertNotifications(retention.sql, ids, { channel: 'other' });
      const key = await retention.add(at, 'delivered');
      await expect(retention.eraseOld(running, undefined, withoutVacuum())).rejects.toThrow('no vacuum');
      expect(await retention.report(at)).toMatchObject([{ walk_channels: ['cases'], bodies_erased: 1 }]);
      await retention.setDays({ other: 1 });
      const reached: unknown[] = [];
      const day = dateOf(Math.floor(at / dayMs));
      const look = async () =>
        reached.push(...(await test.sql('SELECT walk_reached FROM retention_day WHERE day = $1', [day])));
      const query = async (statement: Statement, values?: Values) => {
        if (statement.name !== beginWalk.name || values?.day !== day) return test.postgres.query(statement, values);
        const stopping = new AbortController();
        await retention.eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
        await look();
        const rows = await test.postgres.query(statement, values);
        await look();
        return rows;
      };
      const later = Object.create(withoutVacuum(), { query: { value: query } }) as typeof test.postgres;
      await expect(retention.eraseOld(running, undefined, later)).rejects.toThrow('no vacuum');
      expect(reached).toHaveLength(2);
      expect(reached[1]).toEqual(reached[0]);
      expect(await test.sql('SELECT FROM notification WHERE body IS NOT NULL')).toEqual([]);
      expect(await retention.bodyOf(key)).toBeNull();
      expect(await retention.report(at)).toMatchObject([{ walk_channels: ['cases', 'other'], bodies_erased: 2501 }]);
    });

    it('is not begun again by a process that looked before it, and counts each that is kept once', async () => {
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'waiting');
      await retention.eraseOld();
      const day = Math.floor(at / dayMs);
      const values = { day: dateOf(day), reached: lowestIdAt(day * dayMs), walkedChannels: null, walkedTo: null };
      const begin = (channels: string[]) => test.postgres.query(beginWalk, { ...values, channels });
      await begin(['cases']);
      expect(await retention.report(at)).toMatchObject([{ walk_channels: null, bodies_kept: 1 }]);
      await retention.setDays({ other: 1 });
      await begin(['cases', 'other']);
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 1 }]);
      expect(await test.sql('SELECT notification_id AS id FROM kept_body')).toEqual([{ id: key.notificationId }]);
    });

    it('ends when the former texts have left the disk, in a later round where they could not', async () => {
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'delivered');
      const vacuumed: string[] = [];
      await expect(retention.eraseOld(running, undefined, withoutVacuum())).rejects.toThrow('no vacuum');
      expect(await retention.bodyOf(key)).toBeNull();
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: ['cases'], bodies_erased: 1, bodies_erased_at: null },
      ]);
      await retention.eraseOld(
        running,
        undefined,
        withVacuum(test.postgres, (text) => Promise.resolve(vacuumed.push(text))),
      );
      const tables = (['notification', 'attempt', 'delivery'] as const).map((table) =>
        partitionOf(table, Math.floor(at / dayMs)),
      );
      expect(vacuumed).toContain(`VACUUM (INDEX_CLEANUP ON) ${tables.join(', ')}`);
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: null, erased_channels: ['cases'], bodies_erased: 1 },
      ]);
    });
  });

  describe('a channel whose bodies are to be kept for longer than they were', () => {
    /** For a walk of three steps, in two channels by turns. */
    async function addByTurns(at: number): Promise<void> {
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at })).sort();
      await insertNotifications(
        retention.sql,
        ids.filter((_, nr) => nr % 2 === 0),
      );
      await insertNotifications(
        retention.sql,
        ids.filter((_, nr) => nr % 2 === 1),
        { channel: 'other' },
      );
    }
    const bodiesLeft = () =>
      test.sql(
        'SELECT channel, count(*)::int AS bodies FROM notification WHERE body IS NOT NULL GROUP BY channel ORDER BY channel',
      );
    const generally = (days: number | undefined) => ({
      settings: { ...test.config.settings, BODY_RETENTION_DAYS: days },
    });

    it('keeps what it has left from the next step on, while the walk goes on for the others', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      await addByTurns(at);
      await retention.eraseOld(running, { pause: () => retention.setDays({ other: 30 }) });
      expect(await bodiesLeft()).toEqual([{ channel: 'other', bodies: 750 }]);
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: null, erased_channels: ['cases'], bodies_erased: 1750, bodies_erased_at: expect.any(Date) },
      ]);
      await retention.eraseOld();
      expect(await bodiesLeft()).toEqual([{ channel: 'other', bodies: 750 }]);
      await retention.setDays({ other: 1 });
      await retention.eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await retention.report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_erased: 2500 }]);
    });

    it.each([
      ['it has more days', 30, 7],
      ['the installation has more days', null, 30],
      ['it has none of its own any more, nor has the installation', null, undefined],
    ])('keeps what it has left of a walk that was stopped: %s', async (_, days, general) => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      await addByTurns(at);
      const stopping = new AbortController();
      await retention.eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
      await retention.setDays({ cases: days, other: days });
      await retention.eraseOld(running, undefined, undefined, generally(general));
      expect(await bodiesLeft()).toEqual([
        { channel: 'cases', bodies: 750 },
        { channel: 'other', bodies: 750 },
      ]);
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: null, erased_channels: [], bodies_erased: 1000, bodies_erased_at: null },
      ]);
      await retention.setDays({ cases: 1, other: 1 });
      await retention.eraseOld();
      expect(await bodiesLeft()).toEqual([]);
    });

    it('is walked through from the beginning when it has fewer days again', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      const early = await retention.add(at, 'waiting', { channel: 'other' });
      await addByTurns(at + 1000);
      let pauses = 0;
      const stopping = new AbortController();
      const pause = async () => {
        if (pauses++ === 0) await retention.setDays({ other: 30 });
        else stopping.abort();
      };
      await retention.eraseOld(stopping.signal, { pause });
      expect(await retention.report(at)).toMatchObject([{ walk_channels: ['cases'], bodies_kept: 1 }]);
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: null, erased_channels: ['cases'], bodies_kept: 0 },
      ]);
      await retention.fail(early);
      await retention.setDays({ other: 2 });
      await retention.eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await retention.everythingOf(early)).not.toContain('secret');
    });

    it('keeps what a step was about to erase', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      const [kept, erased] = [
        await retention.add(at, 'failed', { channel: 'other' }),
        await retention.add(at, 'failed'),
      ];
      await retention.eraseOldWhile(() => retention.setDays({ other: 30 }));
      expect(await retention.bodyOf(kept)).not.toBeNull();
      expect(await retention.bodyOf(erased)).toBeNull();
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: null, erased_channels: ['cases'], bodies_erased: 1 },
      ]);
    });

    it('keeps what was kept for an unfinished delivery, and erases it when it is due again', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      const [kept, erased] = [await retention.add(at, 'held', { channel: 'other' }), await retention.add(at, 'held')];
      const stillHeld = await retention.add(at, 'held', { channel: 'other' });
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 3 }]);
      await retention.setDays({ other: 30 });
      await Promise.all([kept, erased].map((key) => retention.fail(key)));
      await retention.eraseOld();
      expect(await retention.bodyOf(erased)).toBeNull();
      expect(await retention.everythingOf(kept)).toContain('HTTP 500: secret');
      expect(await retention.bodyOf(kept)).not.toBeNull();
      expect(await retention.report(at)).toMatchObject([
        { erased_channels: ['cases'], bodies_erased: 1, bodies_kept: 0 },
      ]);
      expect(await retryNow(test.postgres, kept)).toBe('retried');
      await retention.setDays({ other: 2 });
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 2 }]);
      await Promise.all([kept, stillHeld].map((key) => retention.fail(key)));
      await retention.eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await retention.everythingOf(kept)).not.toContain('secret');
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 3, bodies_kept: 0 }]);
    });

    it('keeps what was kept before and was about to be erased', async () => {
      const at = await retention.makeDay(9);
      await retention.setDays({ other: 1 });
      const [kept, erased] = [await retention.add(at, 'held', { channel: 'other' }), await retention.add(at, 'held')];
      await retention.eraseOld();
      await Promise.all([kept, erased].map((key) => retention.fail(key)));
      await retention.eraseOldWhile(() => retention.setDays({ other: 30 }));
      expect(await retention.bodyOf(kept)).not.toBeNull();
      expect(await retention.bodyOf(erased)).toBeNull();
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
      await retention.setDays({ other: 1 });
      await retention.eraseOld();
      expect(await retention.bodyOf(kept)).toBeNull();
    });
  });
});

describe('a walk of retention on a server with a standby', () => {
  // It keeps what it may see in every database of the server, also from the walks and vacuums of other tests.
  let server: Awaited<ReturnType<typeof startPrivatePostgres>> | undefined;
  let database: TestDatabase;
  let retention: TestRetention;
  let test: TestLedger | undefined;

  beforeAll(async () => {
    server = await startPrivatePostgres();
    database = await createDatabase(server.postgres.url);
    retention = await TestRetention.open({ DATABASE_URL: database.url });
    ({ test } = retention);
    await retention.clear();
  });
  afterAll(async () => {
    try {
      await test?.close();
    } finally {
      await server?.stop(); // with its database
    }
  });

  it('waits for what the queries of a standby may see, one without a slot, whose session a role is not told to be that', async () => {
    const { test } = retention;
    const at = await retention.makeDay(9);
    await retention.add(at, 'delivered');
    const [before] = await test.sql<{ xmin: string }>('SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin');
    await expect(retention.eraseOld(running, undefined, withoutVacuumOf(test.postgres))).rejects.toThrow('no vacuum');
    await test.sql('GRANT SELECT ON retention_day TO pg_checkpoint');
    const isStillSeen = async () => {
      const [found] = await test.postgres.transaction(async (query) => {
        await query(statement('be-no-superuser', 'SET LOCAL ROLE pg_checkpoint'));
        return query<{ yes: boolean }>(findOlderSnapshot, { day: dateOf(Math.floor(at / dayMs)) });
      });
      return found!.yes;
    };
    await eventually(async () => !(await isStillSeen()), 'nobody else to see it');
    const disconnect = await connectStandby(database.url, before!.xmin);
    try {
      expect(await isStillSeen()).toBe(true);
    } finally {
      await disconnect();
    }
    await eventually(async () => !(await isStillSeen()), 'the standby to be gone');
  });
});
