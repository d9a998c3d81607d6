import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { deliveryKeys, keyIdOf } from '../../src/delivery/delivery-keys.js';
import { Idempotency } from '../../src/idempotency/idempotency.service.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { Upkeep } from '../../src/dispatching/upkeep.service.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import type { DropConnection } from '../../src/infra/postgres/detach-partitions.js';
import type { Query } from '../../src/infra/postgres/postgres.js';
import { statement, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { cancelNext, type CancelledByErasure } from '../../src/ledger/cancel-erased.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import { dropExpired } from '../../src/ledger/drop-expired.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import {
  attachPartition,
  createPartition,
  dateOf,
  dayOfId,
  lowestIdAt,
  partitionOf,
  partitionsBetween,
} from '../../src/ledger/partitions.js';
import { readBodies, readBodySizes } from '../../src/ledger/read-bodies.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { sendAgain, type SentAgain } from '../../src/ledger/send-again.js';
import { rowsTogether, walkDeliveries } from '../../src/ledger/walk-deliveries.js';
import { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { BodyRetention } from '../../src/retention/body-retention.service.js';
import { DayDropper } from '../../src/retention/day-dropper.service.js';
import { ErasureWork } from '../../src/retention/erasure-work.service.js';
import { stepThrough } from '../../src/retention/erasure-walk.js';
import { Erasures } from '../../src/retention/erasures.service.js';
import { exportDay } from '../../src/retention/export-day.js';
import { beginWalk, findOlderSnapshot } from '../../src/retention/retention-days.js';
import { RetentionReports } from '../../src/retention/retention-report.service.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { eventually } from '../support/eventually.js';
import { TestLedger } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { connectStandby } from '../support/standby.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;
const running = new AbortController().signal;
const mebibyte = 1024 * 1024;
/** Of a large body. Postgres keeps such a text compressed: what counts is how long it is when it is read. */
const large = 500 * 1024;

describe.each(stacks)('retention on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let directory: string;
  let keys: ReturnType<typeof deliveryKeys>;
  let erasures: Erasures;
  let work: ErasureWork;
  let idempotency: Idempotency;

  beforeAll(async () => {
    prepared = await stack.prepare();
    directory = await mkdtemp(join(tmpdir(), 'heraut-export-'));
    test = await TestLedger.open({ ...prepared.settings, BODY_RETENTION_DAYS: '7', EXPORT_DIR: directory });
    await makeMonthsAhead(test.postgres);
    const alive = await test.startProcess(); // the lock of one that is not could be taken over
    const heartbeat = { processId: alive.id } as typeof test.heartbeat;
    idempotency = new Idempotency(new PostgresIdempotencyStore(test.postgres), heartbeat);
    keys = deliveryKeys(idempotency, test.config.settings);
    erasures = new Erasures(test.postgres);
    work = new ErasureWork(test.postgres, idempotency, new InProcessAttemptStates(), test.config);
  });
  beforeEach(async () => {
    await test.clear();
    await test.sql(
      'DELETE FROM retention_day; DELETE FROM kept_body; DELETE FROM erasure; DELETE FROM erased_delivery; DELETE FROM channel',
    );
    await setDays({ cases: null });
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
    await rm(directory, { recursive: true, force: true });
  });

  /** Of channels, those that are not there yet included: as another process commits it. */
  const setDays = (days: Record<string, number | null>) =>
    test.sql(
      `WITH raised AS (UPDATE catalogue SET version = version + 1 RETURNING version)
       INSERT INTO channel (id, name, documentation_link, filters, body_retention_days, version)
       SELECT gen_random_uuid(), name, '', '{}', days, version FROM raised, unnest($1::text[], $2::int[]) AS c (name, days)
       ON CONFLICT (name) DO UPDATE SET body_retention_days = EXCLUDED.body_retention_days, version = EXCLUDED.version`,
      [Object.keys(days), Object.values(days)],
    );

  function eraseOld(
    stopping = running,
    clock: Partial<Clock> = { pause: () => Promise.resolve() },
    postgres = test.postgres,
    config = test.config,
  ): Promise<void> {
    return new BodyRetention(postgres, test.heartbeat, clock as Clock, config).eraseOld(stopping);
  }

  const dropOld = (settings = test.config.settings) => new DayDropper(test.postgres, { settings }).dropExpired(running);

  /** Of these days; other tests leave theirs. */
  async function report(...days: number[]) {
    const { days: all } = await new RetentionReports(test.postgres, test.config).read();
    return all.filter(({ day }) => days.some((at) => dateOf(Math.floor(at / dayMs)) === day));
  }

  async function makeDay(daysAgo: number): Promise<number> {
    const at = Date.now() - daysAgo * dayMs;
    for (const partition of partitionsBetween(at, at)) {
      const [found] = await test.sql<{ yes: boolean }>('SELECT to_regclass($1) IS NOT NULL AS yes', [partition.name]);
      if (!found!.yes) await test.sql(createPartition(partition));
    }
    return at;
  }

  const sql = (text: string, values: unknown[]) => test.sql(text, values);

  /** With a delivery that a receiver has answered once with an error that repeats the body. */
  async function add(at: number, state: DeliveryState, { channel = 'cases', body = '{"secret":1}' } = {}) {
    const key = { notificationId: uuidv7({ msecs: at }), subscriptionId: randomUUID() };
    await insertNotifications(sql, [key.notificationId], { channel, body });
    const columns = { next_at: `now() + interval '1 hour'`, last_status: '500', last_error: `'HTTP 500: ${body}'` };
    const deliveries = { notifications: [key.notificationId], subscriptionIds: [key.subscriptionId], state, columns };
    await insertDeliveries(sql, deliveries);
    await test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error, details)
       VALUES ($1, $2, 1, 1, now(), 1, 500, $3, $4)`,
      [
        key.notificationId,
        key.subscriptionId,
        `HTTP 500: ${body}`,
        JSON.stringify({ address: '192.0.2.1:80', headers: { 'x-echo': body }, body }),
      ],
    );
    return key;
  }
  type Key = Awaited<ReturnType<typeof add>>;

  /** For each notification that many deliveries, each with an attempt whose error repeats the body. */
  async function addMany(notifications: string[], count: number, state: DeliveryState): Promise<void> {
    await insertNotifications(sql, notifications, { body: '{"secret":1}' });
    const subscriptionIds = Array.from({ length: count }, () => randomUUID());
    const columns = { attempts: '1', next_at: 'now()', last_status: '500', last_error: `'HTTP 500: secret'` };
    await insertDeliveries(sql, { notifications, subscriptionIds, state, columns });
    await test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
       SELECT notification_id, subscription_id, 1, 1, now(), 1, 500, last_error FROM delivery`,
    );
  }

  /** While no statement may write more rows of the deliveries and attempts of that day than one is to look at. */
  async function withFewRowsAStatement(at: number, doIt: () => Promise<void>): Promise<void> {
    const tables = (['delivery', 'attempt'] as const).map((table) => partitionOf(table, Math.floor(at / dayMs)));
    await test.sql(`CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF (SELECT count(*) FROM written) > ${rowsTogether} THEN RAISE 'too many rows of % in one statement', TG_TABLE_NAME; END IF;
      RETURN NULL;
    END $$`);
    for (const table of tables)
      await test.sql(`CREATE TRIGGER few AFTER UPDATE ON ${table} REFERENCING NEW TABLE AS written
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`);
    try {
      await doIt();
    } finally {
      await test.sql('DROP FUNCTION refuse_many CASCADE');
    }
  }

  async function bodyOf({ notificationId }: Key): Promise<string | null> {
    const [row] = await test.sql<{ body: string | null }>('SELECT body FROM notification WHERE id = $1', [
      notificationId,
    ]);
    return row!.body;
  }

  /** Everything that the ledger has of it. */
  async function everythingOf({ notificationId }: Key): Promise<string> {
    const tables = [
      ['notification', 'id'],
      ['delivery', 'notification_id'],
      ['attempt', 'notification_id'],
    ];
    const rows = await Promise.all(
      tables.map(([table, id]) =>
        test.sql(`SELECT row_to_json(t)::text AS row FROM ${table} t WHERE ${id} = $1`, [notificationId]),
      ),
    );
    return JSON.stringify(rows);
  }

  describe('erases bodies', () => {
    it('that are past their days, with what receivers answered, and nothing else', async () => {
      const [old, young] = [await makeDay(9), await makeDay(7)];
      const erased = await add(old, 'failed');
      const kept = await add(young, 'failed');
      await eraseOld();
      expect(await bodyOf(erased)).toBeNull();
      expect(await everythingOf(erased)).not.toContain('secret');
      expect(await test.row(erased)).toMatchObject({ state: 'failed', last_status: 500, last_error: 'HTTP 500' });
      const details = { address: '192.0.2.1:80', headers: null, body: null };
      expect(await test.attempts(erased)).toMatchObject([{ status: 500, error: 'HTTP 500', details }]);
      expect(await bodyOf(kept)).not.toBeNull();
    });

    it('of each channel after the days that it has of its own', async () => {
      await setDays({ short: 2, long: 20 });
      const [four, nine] = [await makeDay(4), await makeDay(9)];
      const added = await Promise.all(
        [four, nine].flatMap((at) => ['cases', 'short', 'long'].map((channel) => add(at, 'delivered', { channel }))),
      );
      const hasBody = () => Promise.all(added.map(async (key) => (await bodyOf(key)) !== null));
      await eraseOld();
      expect(await hasBody()).toEqual([true, false, true, false, false, true]);
      // It is given fewer days later: it has a walk of its own, through the days that were walked through before.
      await setDays({ long: 3 });
      await eraseOld();
      expect(await hasBody()).toEqual([true, false, false, false, false, false]);
      expect(await report(four, nine)).toMatchObject([
        { erased_channels: ['long', 'short'], bodies_erased: 2 },
        { erased_channels: ['cases', 'long', 'short'], bodies_erased: 3, body_bytes: 36 },
      ]);
    });

    it('of a channel that was removed after the days that it had', async () => {
      await setDays({ short: 2, long: 20 });
      const at = await makeDay(4);
      const [short, long] = await Promise.all(['short', 'long'].map((channel) => add(at, 'delivered', { channel })));
      await test.sql('UPDATE channel SET deleted_at = now()');
      await eraseOld();
      expect([await bodyOf(short!), await bodyOf(long!)]).toEqual([null, expect.any(String)]);
    });

    it.each(['queued', 'waiting', 'held', 'sending'] as const)(
      'not while a delivery is %s, but when it has ended',
      async (state) => {
        const at = await makeDay(9);
        const key = await add(at, state);
        await eraseOld();
        expect(await bodyOf(key)).not.toBeNull();
        expect(await report(at)).toMatchObject([{ bodies_erased: 0, bodies_kept: 1 }]);
        await eraseOld();
        expect(await bodyOf(key)).not.toBeNull();
        await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
        await eraseOld();
        expect(await bodyOf(key)).toBeNull();
        expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
        expect(await report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 0 }]);
      },
    );

    it('not of one that is scheduled for later, whose publisher may still replace it, but when its time is over', async () => {
      const at = await makeDay(9);
      const [key, ended] = [await add(at, 'cancelled'), await add(at, 'cancelled')];
      const scheduleFor = (when: string) =>
        test.sql(`UPDATE notification SET not_before = now() + $2::interval WHERE id = $1`, [key.notificationId, when]);
      await scheduleFor('1 day');
      await eraseOld();
      expect([await bodyOf(key), await bodyOf(ended)]).toEqual([expect.any(String), null]);
      expect(await report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 1 }]);
      await scheduleFor('-1 second');
      await eraseOld();
      expect(await bodyOf(key)).toBeNull();
      expect(await report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 0 }]);
    });

    it('of a day once, in steps, going on where it was when the process was stopped', async () => {
      const at = await makeDay(9);
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at }));
      await insertNotifications(sql, ids);
      const stopping = new AbortController();
      await eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
      expect(await report(at)).toMatchObject([
        { walk_channels: ['cases'], bodies_erased: 1000, bodies_erased_at: null },
      ]);
      await eraseOld();
      const after = await report(at);
      expect(after).toMatchObject([{ walk_channels: null, bodies_erased: 2500, bodies_erased_at: expect.any(Date) }]);
      await eraseOld();
      expect(await report(at)).toEqual(after);
    });
  });

  describe('by a clock of Postgres that is more than a day from its own', () => {
    const retaining = ['drop-partitions', 'erase-old-bodies', 'drop-audit-months'];

    /** As a dispatcher has them; of the others nothing is called. */
    function tasksOf(clock: Clock) {
      const none = undefined as never;
      const { postgres, config } = test;
      const heartbeat = new Heartbeat(postgres, config, clock);
      const bodies = new BodyRetention(postgres, heartbeat, clock, config);
      const days = new DayDropper(postgres, { settings: { ...config.settings, EXPORT_DIR: undefined } });
      const upkeep = new Upkeep(
        postgres,
        config,
        heartbeat,
        none,
        none,
        none,
        none,
        none,
        none,
        bodies,
        days,
        none,
        clock,
      );
      return upkeep.tasks.filter(({ name }) => retaining.includes(name));
    }

    it.each([-1.1, 1.1])(
      'a process drops and erases nothing, which is %d days from what it should be',
      async (aheadDays) => {
        const [expired, old] = [await makeDay(40), await makeDay(9)];
        await add(expired, 'delivered');
        const key = await add(old, 'delivered');
        await test.sql(
          "CREATE TABLE audit_entry_200001 PARTITION OF audit_entry FOR VALUES FROM ('2000-01-01') TO ('2000-02-01')",
        );
        const kept = async () => {
          const [row] = await test.sql<{ month: boolean }>(
            `SELECT to_regclass('audit_entry_200001') IS NOT NULL AS month`,
          );
          const [day] = await report(expired);
          return { ...row, body: (await bodyOf(key)) !== null, isDropped: day?.dropped_at instanceof Date };
        };
        const warned = vi.spyOn(Logger.prototype, 'warn');
        const apart: Clock = { pause: systemClock.pause, now: () => systemClock.now() + aheadDays * dayMs };
        for (const { run } of tasksOf(apart)) await run(running);
        expect(await kept()).toEqual({ month: true, body: true, isDropped: false });
        expect(warned.mock.calls.map(([said]) => said)).toEqual(
          retaining.map((task) => expect.objectContaining({ event: 'retention.clocks-apart', task })),
        );
        warned.mockRestore();
        for (const { run } of tasksOf(systemClock)) await run(running);
        expect(await kept()).toEqual({ month: false, body: false, isDropped: true });
      },
    );
  });

  describe('what retention erases', () => {
    it('may have any number of deliveries: no statement takes more of them than it can', async () => {
      const at = await makeDay(9);
      const ids = Array.from({ length: 4 }, () => uuidv7({ msecs: at }));
      await addMany(ids, rowsTogether / 2, 'failed');
      await withFewRowsAStatement(at, eraseOld);
      expect(await report(at)).toMatchObject([{ bodies_erased: 4, walk_channels: null }]);
      expect(await test.sql('SELECT FROM notification WHERE body IS NOT NULL')).toEqual([]);
      expect(await test.sql(`SELECT FROM delivery WHERE last_error <> 'HTTP 500'`)).toEqual([]);
      expect(await test.sql(`SELECT FROM attempt WHERE error <> 'HTTP 500'`)).toEqual([]);
    });

    it('is kept where any of many deliveries is not finished, and the others are not', async () => {
      const at = await makeDay(9);
      const ids = Array.from({ length: 3 }, () => uuidv7({ msecs: at }));
      await addMany(ids, rowsTogether / 2, 'failed');
      await test.sql(
        `UPDATE delivery SET state = 'waiting' WHERE notification_id = $1
           AND subscription_id = (SELECT max(subscription_id::text)::uuid FROM delivery)`,
        [ids[1]],
      );
      await eraseOld();
      expect(await report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 1 }]);
      expect(await test.sql('SELECT id FROM notification WHERE body IS NOT NULL')).toEqual([{ id: ids[1] }]);
    });

    it('is erased although an earlier day fails, which is told', async () => {
      const [earlier, later] = [await makeDay(10), await makeDay(9)];
      const [failing, erased] = [await add(earlier, 'failed'), await add(later, 'failed')];
      const kept = await add(later, 'waiting');
      await test.sql(
        `ALTER TABLE notification ADD CONSTRAINT full_disk CHECK (id <> '${failing.notificationId}' OR body IS NOT NULL) NOT VALID`,
      );
      try {
        await expect(eraseOld()).rejects.toThrow('full_disk');
        expect(await bodyOf(erased)).toBeNull();
        await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
        await expect(eraseOld()).rejects.toThrow('full_disk');
        expect(await bodyOf(kept)).toBeNull();
      } finally {
        await test.sql('ALTER TABLE notification DROP CONSTRAINT full_disk');
      }
      await eraseOld();
      expect(await bodyOf(failing)).toBeNull();
    });
  });

  describe('a walk through a day', () => {
    const withVacuum = (vacuum: (text: string) => Promise<unknown>): typeof test.postgres =>
      Object.create(test.postgres, { upkeep: { value: { query: vacuum } } }) as typeof test.postgres;
    const withoutVacuum = () => withVacuum(() => Promise.reject(new Error('no vacuum')));

    it('ends when nobody sees any more what it erased, and no channel that becomes due waits for that', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody else could see it
      const at = await makeDay(9);
      await setDays({ other: 30 });
      const [key, other] = [await add(at, 'delivered'), await add(at, 'delivered', { channel: 'other' })];
      const unfinished = await add(at, 'waiting');
      const reader = test.postgres.upkeep.createQueryRunner();
      await reader.startTransaction('REPEATABLE READ');
      try {
        await reader.query('SET LOCAL idle_in_transaction_session_timeout = 0'); // it is idle for all of the rounds
        await reader.query('SELECT FROM notification LIMIT 1');
        await eraseOld();
        expect([await bodyOf(key), await bodyOf(other)]).toEqual([null, expect.any(String)]);
        const first = { walk_channels: ['cases'], bodies_erased: 1, bodies_kept: 1, bodies_erased_at: null };
        expect(await report(at)).toMatchObject([first]);
        await setDays({ other: 1 });
        await fail(unfinished);
        for (let round = 0; round < 2; round++) {
          await eraseOld();
          expect([await bodyOf(other), await bodyOf(unfinished)]).toEqual([null, null]);
          const both = { walk_channels: ['cases', 'other'], bodies_erased: 3, bodies_kept: 0, bodies_erased_at: null };
          expect(await report(at)).toMatchObject([both]);
        }
      } finally {
        await reader.commitTransaction();
        await reader.release();
      }
      await eraseOld();
      expect(await report(at)).toMatchObject([
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
      const at = await makeDay(9);
      await add(at, 'delivered');
      await test.sql('CREATE TABLE large AS SELECT generate_series(1, 500000)');
      const other = new pg.Client({ connectionString: prepared.settings.DATABASE_URL });
      await other.connect();
      await other.query('SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1'); // minutes
      const vacuum = other.query('VACUUM large').catch((error: unknown) => error);
      const vacuuming = () =>
        test.sql<{ pid: number }>(`SELECT pid FROM pg_stat_progress_vacuum WHERE relid = 'large'::regclass`);
      try {
        await eventually(async () => (await vacuuming()).length === 1, 'the vacuum to be under way');
        await eraseOld();
        expect(await report(at)).toMatchObject([{ walk_channels: null, bodies_erased_at: expect.any(Date) }]);
        expect(await vacuuming()).toHaveLength(1);
      } finally {
        for (const { pid } of await vacuuming()) await test.sql('SELECT pg_cancel_backend($1)', [pid]);
        await vacuum;
        await other.end();
        await test.sql('DROP TABLE large');
      }
    });

    it('waits for what the queries of a standby may see, one without a slot, whose session a role is not told to be that', async () => {
      if (test.postgres.isEmbedded) return; // it has no standby
      const at = await makeDay(9);
      await add(at, 'delivered');
      const [before] = await test.sql<{ xmin: string }>('SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin');
      await expect(eraseOld(running, undefined, withoutVacuum())).rejects.toThrow('no vacuum');
      await test.sql('GRANT SELECT ON retention_day TO pg_checkpoint');
      const isStillSeen = async () => {
        const [found] = await test.postgres.transaction(async (query) => {
          await query(statement('be-no-superuser', 'SET LOCAL ROLE pg_checkpoint'));
          return query<{ yes: boolean }>(findOlderSnapshot, { day: dateOf(Math.floor(at / dayMs)) });
        });
        return found!.yes;
      };
      await eventually(async () => !(await isStillSeen()), 'nobody else to see it');
      const disconnect = await connectStandby(prepared.settings.DATABASE_URL!, before!.xmin);
      try {
        expect(await isStillSeen()).toBe(true);
      } finally {
        await disconnect();
      }
      await eventually(async () => !(await isStillSeen()), 'the standby to be gone');
    });

    it('that waits for its end is begun anew for one more channel by one process, and by no other', async () => {
      const at = await makeDay(9);
      await setDays({ other: 30 });
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at }));
      await insertNotifications(sql, ids, { channel: 'other' });
      const key = await add(at, 'delivered');
      await expect(eraseOld(running, undefined, withoutVacuum())).rejects.toThrow('no vacuum');
      expect(await report(at)).toMatchObject([{ walk_channels: ['cases'], bodies_erased: 1 }]);
      await setDays({ other: 1 });
      const reached: unknown[] = [];
      const day = dateOf(Math.floor(at / dayMs));
      const look = async () =>
        reached.push(...(await test.sql('SELECT walk_reached FROM retention_day WHERE day = $1', [day])));
      const query = async (statement: Statement, values?: Values) => {
        if (statement.name !== beginWalk.name || values?.day !== day) return test.postgres.query(statement, values);
        const stopping = new AbortController();
        await eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
        await look();
        const rows = await test.postgres.query(statement, values);
        await look();
        return rows;
      };
      const later = Object.create(withoutVacuum(), { query: { value: query } }) as typeof test.postgres;
      await expect(eraseOld(running, undefined, later)).rejects.toThrow('no vacuum');
      expect(reached).toHaveLength(2);
      expect(reached[1]).toEqual(reached[0]);
      expect(await test.sql('SELECT FROM notification WHERE body IS NOT NULL')).toEqual([]);
      expect(await bodyOf(key)).toBeNull();
      expect(await report(at)).toMatchObject([{ walk_channels: ['cases', 'other'], bodies_erased: 2501 }]);
    });

    it('is not begun again by a process that looked before it, and counts each that is kept once', async () => {
      const at = await makeDay(9);
      const key = await add(at, 'waiting');
      await eraseOld();
      const day = Math.floor(at / dayMs);
      const values = { day: dateOf(day), reached: lowestIdAt(day * dayMs), walkedChannels: null, walkedTo: null };
      const begin = (channels: string[]) => test.postgres.query(beginWalk, { ...values, channels });
      await begin(['cases']);
      expect(await report(at)).toMatchObject([{ walk_channels: null, bodies_kept: 1 }]);
      await setDays({ other: 1 });
      await begin(['cases', 'other']);
      await eraseOld();
      expect(await report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 1 }]);
      expect(await test.sql('SELECT notification_id AS id FROM kept_body')).toEqual([{ id: key.notificationId }]);
    });

    it('ends when the former texts have left the disk, in a later round where they could not', async () => {
      const at = await makeDay(9);
      const key = await add(at, 'delivered');
      const vacuumed: string[] = [];
      await expect(eraseOld(running, undefined, withoutVacuum())).rejects.toThrow('no vacuum');
      expect(await bodyOf(key)).toBeNull();
      expect(await report(at)).toMatchObject([{ walk_channels: ['cases'], bodies_erased: 1, bodies_erased_at: null }]);
      await eraseOld(
        running,
        undefined,
        withVacuum((text) => Promise.resolve(vacuumed.push(text))),
      );
      const tables = (['notification', 'attempt', 'delivery'] as const).map((table) =>
        partitionOf(table, Math.floor(at / dayMs)),
      );
      expect(vacuumed).toContain(`VACUUM (INDEX_CLEANUP ON) ${tables.join(', ')}`);
      expect(await report(at)).toMatchObject([{ walk_channels: null, erased_channels: ['cases'], bodies_erased: 1 }]);
    });
  });

  type SentAgainBy = [by: string, send: (key: Key) => Promise<unknown>];
  const replayed = (key: Key, item: Partial<SentAgain>) =>
    test.postgres.transaction((query) => sendAgainOf(query, key, item));
  const sendAgainOf = (query: Query, key: Key, item: Partial<SentAgain> = {}) =>
    sendAgain(
      query,
      dayOfId(key.notificationId),
      [{ ...key, isNew: false, heldFor: undefined, objectKey: null, ...item }],
      { states: ['failed'], replay: randomUUID() },
    );
  const waysOfSendingAgain: SentAgainBy[] = [
    ['a retry', (key) => retryNow(test.postgres, key)],
    ['a replay', (key) => replayed(key, {})],
    ['a replay for one more subscription', (key) => replayed(key, { isNew: true, subscriptionId: randomUUID() })],
  ];

  /** As `test.postgres`, but once, when answers have been erased and the text has not, `doIt` comes between. */
  function withMeanwhile(doIt: () => Promise<unknown>): typeof test.postgres {
    let isDone = false;
    const query = async (statement: Statement, values?: Values) => {
      const rows = await test.postgres.query(statement, values);
      if (statement.name === 'erase-answers' && !isDone) {
        isDone = true;
        await doIt();
      }
      return rows;
    };
    return Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres;
  }

  /** `doIt` comes between a step's look and its last transaction. */
  const eraseOldWhile = (doIt: () => Promise<unknown>) => eraseOld(running, undefined, withMeanwhile(doIt));

  /** The call of what was sent again has ended, with an answer that repeats the body. */
  async function fail({ notificationId }: Key): Promise<void> {
    await test.sql(
      `UPDATE delivery SET state = 'failed', next_at = NULL, last_status = 500, last_error = 'HTTP 500: secret'
       WHERE notification_id = $1`,
      [notificationId],
    );
    await test.sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
       SELECT notification_id, subscription_id, 2, 2, now(), 1, 500, last_error FROM delivery WHERE notification_id = $1`,
      [notificationId],
    );
  }

  describe('what is sent again while retention looks through its deliveries', () => {
    it.each(waysOfSendingAgain)('keeps its text until it has ended: %s', async (_, send) => {
      const at = await makeDay(9);
      const [key, other] = [await add(at, 'failed'), await add(at, 'failed')];
      await eraseOldWhile(() => send(key));
      expect(await bodyOf(key)).not.toBeNull();
      expect(await bodyOf(other)).toBeNull();
      expect(await report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 1, walk_channels: null }]);
      await fail(key);
      await eraseOld();
      expect(await everythingOf(key)).not.toContain('secret');
      expect(await report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 0 }]);
    });

    it('leaves no answer where it has ended before its text went', async () => {
      const at = await makeDay(9);
      const key = await add(at, 'failed');
      const postgres = withMeanwhile(async () => {
        await retryNow(test.postgres, key);
        await fail(key);
      });
      await eraseOld(running, undefined, postgres);
      expect(await everythingOf(key)).not.toContain('secret');
      expect(await report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 0 }]);
    });

    it('keeps its text also where it was kept before', async () => {
      const at = await makeDay(9);
      const key = await add(at, 'waiting');
      await eraseOld();
      await fail(key);
      await eraseOldWhile(() => retryNow(test.postgres, key));
      expect(await bodyOf(key)).not.toBeNull();
      expect(await report(at)).toMatchObject([{ bodies_erased: 0, bodies_kept: 1 }]);
      await fail(key);
      await eraseOld();
      expect(await everythingOf(key)).not.toContain('secret');
    });

    it('keeps its text where that is committed while retention waits for it', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody can wait for another
      const at = await makeDay(9);
      const key = await add(at, 'failed');
      await test.sql('UPDATE delivery SET last_error = NULL'); // nothing of the delivery itself is waited for
      const erasing = await test.postgres.transaction(async (query) => {
        await sendAgainOf(query, key);
        const begun = eraseOld();
        const waiting = `SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%is_as_read%'`;
        await eventually(async () => (await test.sql(waiting)).length > 0);
        return { begun };
      });
      await erasing.begun;
      expect(await bodyOf(key)).not.toBeNull();
      expect(await test.state(key)).toBe('waiting');
    });
  });

  describe('a channel whose bodies are to be kept for longer than they were', () => {
    /** For a walk of three steps, in two channels by turns. */
    async function addByTurns(at: number): Promise<void> {
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at })).sort();
      await insertNotifications(
        sql,
        ids.filter((_, nr) => nr % 2 === 0),
      );
      await insertNotifications(
        sql,
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
      const at = await makeDay(9);
      await setDays({ other: 1 });
      await addByTurns(at);
      await eraseOld(running, { pause: async () => void (await setDays({ other: 30 })) });
      expect(await bodiesLeft()).toEqual([{ channel: 'other', bodies: 750 }]);
      expect(await report(at)).toMatchObject([
        { walk_channels: null, erased_channels: ['cases'], bodies_erased: 1750, bodies_erased_at: expect.any(Date) },
      ]);
      await eraseOld();
      expect(await bodiesLeft()).toEqual([{ channel: 'other', bodies: 750 }]);
      await setDays({ other: 1 });
      await eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_erased: 2500 }]);
    });

    it.each([
      ['it has more days', 30, 7],
      ['the installation has more days', null, 30],
      ['it has none of its own any more, nor has the installation', null, undefined],
    ])('keeps what it has left of a walk that was stopped: %s', async (_, days, general) => {
      const at = await makeDay(9);
      await setDays({ other: 1 });
      await addByTurns(at);
      const stopping = new AbortController();
      await eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
      await setDays({ cases: days, other: days });
      await eraseOld(running, undefined, undefined, generally(general));
      expect(await bodiesLeft()).toEqual([
        { channel: 'cases', bodies: 750 },
        { channel: 'other', bodies: 750 },
      ]);
      expect(await report(at)).toMatchObject([
        { walk_channels: null, erased_channels: [], bodies_erased: 1000, bodies_erased_at: null },
      ]);
      await setDays({ cases: 1, other: 1 });
      await eraseOld();
      expect(await bodiesLeft()).toEqual([]);
    });

    it('is walked through from the beginning when it has fewer days again', async () => {
      const at = await makeDay(9);
      await setDays({ other: 1 });
      const early = await add(at, 'waiting', { channel: 'other' });
      await addByTurns(at + 1000);
      let pauses = 0;
      const stopping = new AbortController();
      const pause = async () => {
        if (pauses++ === 0) await setDays({ other: 30 });
        else stopping.abort();
      };
      await eraseOld(stopping.signal, { pause });
      expect(await report(at)).toMatchObject([{ walk_channels: ['cases'], bodies_kept: 1 }]);
      await eraseOld();
      expect(await report(at)).toMatchObject([{ walk_channels: null, erased_channels: ['cases'], bodies_kept: 0 }]);
      await fail(early);
      await setDays({ other: 2 });
      await eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await everythingOf(early)).not.toContain('secret');
    });

    it('keeps what a step was about to erase', async () => {
      const at = await makeDay(9);
      await setDays({ other: 1 });
      const [kept, erased] = [await add(at, 'failed', { channel: 'other' }), await add(at, 'failed')];
      await eraseOldWhile(() => setDays({ other: 30 }));
      expect(await bodyOf(kept)).not.toBeNull();
      expect(await bodyOf(erased)).toBeNull();
      expect(await report(at)).toMatchObject([{ walk_channels: null, erased_channels: ['cases'], bodies_erased: 1 }]);
    });

    it('keeps what was kept for an unfinished delivery, and erases it when it is due again', async () => {
      const at = await makeDay(9);
      await setDays({ other: 1 });
      const [kept, erased] = [await add(at, 'held', { channel: 'other' }), await add(at, 'held')];
      const stillHeld = await add(at, 'held', { channel: 'other' });
      await eraseOld();
      expect(await report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 3 }]);
      await setDays({ other: 30 });
      await Promise.all([kept, erased].map(fail));
      await eraseOld();
      expect(await bodyOf(erased)).toBeNull();
      expect(await everythingOf(kept)).toContain('HTTP 500: secret');
      expect(await bodyOf(kept)).not.toBeNull();
      expect(await report(at)).toMatchObject([{ erased_channels: ['cases'], bodies_erased: 1, bodies_kept: 0 }]);
      expect(await retryNow(test.postgres, kept)).toBe('retried');
      await setDays({ other: 2 });
      await eraseOld();
      expect(await report(at)).toMatchObject([{ erased_channels: ['cases', 'other'], bodies_kept: 2 }]);
      await Promise.all([kept, stillHeld].map(fail));
      await eraseOld();
      expect(await bodiesLeft()).toEqual([]);
      expect(await everythingOf(kept)).not.toContain('secret');
      expect(await report(at)).toMatchObject([{ bodies_erased: 3, bodies_kept: 0 }]);
    });

    it('keeps what was kept before and was about to be erased', async () => {
      const at = await makeDay(9);
      await setDays({ other: 1 });
      const [kept, erased] = [await add(at, 'held', { channel: 'other' }), await add(at, 'held')];
      await eraseOld();
      await Promise.all([kept, erased].map(fail));
      await eraseOldWhile(() => setDays({ other: 30 }));
      expect(await bodyOf(kept)).not.toBeNull();
      expect(await bodyOf(erased)).toBeNull();
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
      await setDays({ other: 1 });
      await eraseOld();
      expect(await bodyOf(kept)).toBeNull();
    });
  });

  describe('of an erased body', () => {
    it('nothing is read, nothing is sent, and nobody can have it sent again', async () => {
      const ended = await add(await makeDay(9), 'failed');
      await eraseOld();
      expect(await readBodies(test.postgres, [ended.notificationId])).toEqual(new Map());
      expect(await readBodySizes(test.postgres, [ended.notificationId])).toEqual(new Map());
      expect(await retryNow(test.postgres, ended)).toBe('erased');
      expect(await replayed(ended, {})).toBe(0);
      expect(await replayed(ended, { isNew: true, subscriptionId: randomUUID() })).toBe(0);
      expect(await test.state(ended)).toBe('failed');
      // One that was retried at the moment of its erasure is handed out without a body, which ends it.
      await test.sql(`UPDATE delivery SET state = 'waiting', next_at = now()`);
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ ...ended, body: null }]);
    });
  });

  describe('an erasure that is asked for', () => {
    const mainObject = 'https://zaken.example.org/zaken/"1"';
    const about = (hoofdObject: string) => JSON.stringify({ kanaal: 'cases', hoofdObject, kenmerken: {} });
    const settleAll = () => test.sql('UPDATE erased_delivery SET gone_at = now() WHERE gone_at IS NOT NULL');
    const workOff = () => work.workOff(running);
    const workOn = (postgres: typeof test.postgres) =>
      new ErasureWork(postgres, idempotency, new InProcessAttemptStates(), test.config);

    it('of a notification cancels what is not sent yet, and is done when no worker can have it any more', async () => {
      const key = await add(Date.now(), 'queued');
      const other = await add(Date.now(), 'queued');
      await test.sql(`UPDATE notification SET request_key = 'order-4711'`);
      const { id, state } = await erasures.ofNotification(key.notificationId);
      expect(state).toBe('erasing');
      await workOff();
      expect(await test.row(key)).toMatchObject({
        state: 'cancelled',
        generation: 2,
        last_error: 'the body of its notification was erased',
      });
      expect(await everythingOf(key)).not.toMatch(/secret|order-4711/);
      expect(await everythingOf(other)).toMatch(/secret.*order-4711/);
      // A worker that has its message finds its key sealed.
      expect(await keys.acquire(keyIdOf({ ...key, replays: 0 }))).toMatchObject({ kind: 'sealed' });
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', erased: 1, cancelled: 1, unsettled: 1 });
      // An answer may wait for its turn to be written, and then for its statement.
      expect(await test.sql(`SELECT FROM erased_delivery WHERE gone_at > now() + interval '45 s'`)).toHaveLength(1);
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done', unsettled: 0 });
    });

    it('reports each that it cancels, and each that had ended just before, once', async () => {
      const [id, ended] = [uuidv7(), randomUUID()];
      const addSome = (subscriptionIds: string[], state: DeliveryState, columns: Record<string, string>) =>
        insertDeliveries(sql, { notifications: [id], subscriptionIds, state, columns });
      const waiting = [randomUUID(), randomUUID(), randomUUID()];
      await insertNotifications(sql, [id]);
      await addSome(waiting, 'waiting', { next_at: 'now()' });
      await addSome([ended], 'cancelled', { ended_at: 'now()' });
      const reported: CancelledByErasure[] = [];
      const cancel = (values: Values) =>
        test.postgres.transaction(async (query) => {
          const { reached, found } = await cancelNext(query, dayOfId(id), values);
          reported.push(...found);
          return reached;
        });
      expect(await walkDeliveries([id], cancel, { stopping: running, limit: 2 })).toBe(true);
      const [cancelled, before] = [true, false].map((yes) => reported.filter(({ isCancelled }) => isCancelled === yes));
      expect(cancelled!.map(({ subscriptionId }) => subscriptionId).toSorted()).toEqual(waiting.toSorted());
      expect(before!.map(({ subscriptionId }) => subscriptionId)).toEqual([ended]);
    });

    it('of a notification with more deliveries than one statement takes cancels and erases all of them', async () => {
      const id = uuidv7();
      await addMany([id], rowsTogether + 1, 'waiting');
      const erasure = await erasures.ofNotification(id);
      await withFewRowsAStatement(Date.now(), workOff);
      expect(await erasures.get(erasure.id)).toMatchObject({ erased: 1, cancelled: rowsTogether + 1 });
      expect(await test.sql(`SELECT DISTINCT state FROM delivery`)).toEqual([{ state: 'cancelled' }]);
      expect(await test.sql(`SELECT FROM attempt WHERE error LIKE '%secret%'`)).toEqual([]);
    });

    it.each(waysOfSendingAgain)('cancels what is sent again while it is worked off: %s', async (_, send) => {
      const key = await add(Date.now(), 'failed');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOn(withMeanwhile(() => send(key))).workOff(running);
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 1, erased: 1, cancelled: 1 });
      expect(await everythingOf(key)).not.toContain('secret');
      expect(await test.sql(`SELECT FROM delivery WHERE state NOT IN ('failed', 'cancelled')`)).toEqual([]);
    });

    it('about a main object goes on behind what was sent again meanwhile, and misses nothing', async () => {
      const body = about(mainObject);
      const [key, other] = [await add(Date.now(), 'failed', { body }), await add(Date.now(), 'failed', { body })];
      const { id } = await erasures.aboutMainObject(mainObject);
      await workOff();
      await erasures.confirm(id, 2);
      await workOn(withMeanwhile(() => retryNow(test.postgres, key))).workOff(running);
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 2, erased: 2, cancelled: 1 });
      expect(await bodyOf(key)).toBeNull();
      expect(await bodyOf(other)).toBeNull();
    });

    it('seals each key under which a delivery may be sent that was sent again after it was cancelled', async () => {
      const key = await add(Date.now(), 'queued');
      await erasures.ofNotification(key.notificationId);
      await workOn(withMeanwhile(() => retryNow(test.postgres, key))).workOff(running);
      expect(await test.row(key)).toMatchObject({ state: 'cancelled', replays: 1 });
      for (const replays of [0, 1])
        expect(await keys.acquire(keyIdOf({ ...key, replays }))).toMatchObject({ kind: 'sealed' });
    });

    it('is worked off although an earlier one fails', async () => {
      const [first, second] = [await add(Date.now(), 'failed'), await add(Date.now(), 'failed')];
      for (const { notificationId } of [first, second]) await erasures.ofNotification(notificationId);
      await test.sql(
        `ALTER TABLE notification ADD CONSTRAINT full_disk CHECK (id <> '${first.notificationId}' OR body IS NOT NULL) NOT VALID`,
      );
      try {
        await expect(workOff()).rejects.toThrow('full_disk');
      } finally {
        await test.sql('ALTER TABLE notification DROP CONSTRAINT full_disk');
      }
      expect(await bodyOf(first)).not.toBeNull();
      expect(await bodyOf(second)).toBeNull();
    });

    it('is begun, and ended, although a hundred older ones wait for what workers have', async () => {
      await test.sql(
        `WITH older AS (
           INSERT INTO erasure (id, state, reached, notification_id)
           SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'ending', $1, $1 FROM generate_series(1, 100) AS n
           RETURNING id
         )
         INSERT INTO erased_delivery (erasure_id, notification_id, subscription_id, replays, was_queued, gone_at)
         SELECT id, id, id, 0, true, now() + interval '1 hour' FROM older`,
        [lowestIdAt(0)],
      );
      const key = await add(Date.now(), 'queued');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', erased: 1, cancelled: 1 });
      await test.sql('UPDATE erased_delivery SET gone_at = now() WHERE erasure_id = $1', [id]);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
    });

    it('waits for the call that is open, and erases what its answer leaves', async () => {
      const key = await add(Date.now(), 'queued');
      const call = await keys.acquire(keyIdOf({ ...key, replays: 0 }));
      const { id } = await erasures.ofNotification(key.notificationId);
      for (let round = 0; round < 3; round++) {
        await workOff();
        await settleAll();
      }
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', unsettled: 1 });
      await test.sql(
        `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
         VALUES ($1, $2, 1, 2, now(), 1, 502, 'HTTP 502: secret')`,
        [key.notificationId, key.subscriptionId],
      );
      if (call.kind === 'acquired') await call.lock.release();
      await workOff();
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
      expect(await everythingOf(key)).not.toContain('secret');
    });

    it('of an at-most-once delivery waits until its call has ended', async () => {
      const key = await add(Date.now(), 'sending');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', unsettled: 1 });
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
    });

    it('about a main object counts first, and erases what was confirmed, over all days', async () => {
      const old = await makeDay(5);
      const found = await Promise.all(
        [old, Date.now()].flatMap((at) => [
          add(at, 'delivered', { body: about(mainObject) }),
          add(at, 'waiting', { body: about(mainObject) }),
        ]),
      );
      const others = await Promise.all([
        add(old, 'delivered', { body: about(`${mainObject}/2`) }),
        // Of the same name, but a characteristic.
        add(old, 'delivered', {
          body: JSON.stringify({ hoofdObject: 'https://other/', kenmerken: { hoofdObject: mainObject } }),
        }),
      ]);
      // Ids may come among those of an older block, whose digest denies what it was not made of.
      await test.sql(
        `INSERT INTO digest (from_id, to_id, bits) SELECT min(id::text)::uuid, max(id::text)::uuid, decode(repeat('00', 8000), 'hex') FROM notification`,
      );
      const { id, state } = await erasures.aboutMainObject(mainObject);
      expect(state).toBe('counting');
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'counted', found: 4, erased: 0 });
      await expect(erasures.confirm(id, 5)).rejects.toMatchObject({ code: 'confirm-mismatch' });
      await workOff();
      expect(await bodyOf(found[0]!)).not.toBeNull();
      await erasures.confirm(id, 4);
      await expect(erasures.confirm(id, 4)).rejects.toMatchObject({ code: 'erasure-not-counted' });
      await workOff();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 4, erased: 4, cancelled: 2 });
      for (const key of found) expect(await bodyOf(key)).toBeNull();
      for (const key of others) expect(await bodyOf(key)).not.toBeNull();
      const kept = await test.sql('SELECT e, (SELECT json_agg(a) FROM audit_entry a) AS audit FROM erasure e');
      expect(JSON.stringify(kept)).toContain('erasure.done');
      expect(JSON.stringify(kept)).not.toContain('zaken.example.org');
      await test.sql('DELETE FROM digest');
    });

    it('about a main object reads few large bodies at a time, and passes over none', async () => {
      const old = await makeDay(5);
      const text = 'x'.repeat(large);
      const added = [];
      for (let nr = 0; nr < 20; nr++) {
        const body = JSON.stringify({ hoofdObject: nr % 10 === 9 ? mainObject : 'https://other/', text });
        const id = uuidv7({ msecs: old + nr });
        await insertNotifications(sql, [id], { body });
        added.push(id);
      }
      const query: Query = (...asked) => test.postgres.query(...asked);
      const days = [dayOfId(added[0]!)];
      const [found, looked]: [string[], number[]] = [[], []];
      for (let [reached, isOver] = [lowestIdAt(0), false]; !isOver;) {
        const step = await stepThrough(query, mainObject, reached, { days, limit: 100 });
        looked.push(added.filter((id) => id > reached && id <= step.reached).length);
        found.push(...step.ids);
        [reached, isOver] = [step.reached, step.isOver];
      }
      expect(found).toEqual([added[9], added[19]]);
      // Those that make 4 MiB, the last one included.
      expect(Math.max(...looked)).toBe(Math.ceil((4 * mebibyte) / large));
    });

    it.each([1, 2, 3])(
      'of a day that is away is done there too, also with %i of its partitions detached',
      async (count) => {
        const at = await makeDay(8);
        const named = await add(at, 'waiting');
        const found = await add(at, 'waiting', { body: about(mainObject) });
        const away = partitionsBetween(at, at).slice(-count);
        for (const { table, name } of away.toReversed())
          await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
        const one = await erasures.ofNotification(named.notificationId);
        const all = await erasures.aboutMainObject(mainObject);
        await workOff();
        await erasures.confirm(all.id, 1);
        await workOff();
        await settleAll();
        await workOff();
        for (const { id } of [one, all])
          expect(await erasures.get(id)).toMatchObject({ state: 'done', erased: 1, cancelled: 1 });
        for (const partition of away) await test.sql(attachPartition(partition));
        for (const key of [named, found]) {
          expect(await bodyOf(key)).toBeNull();
          expect(await everythingOf(key)).not.toMatch(/secret|zaken/);
          expect(await test.row(key)).toMatchObject({ state: 'cancelled' });
        }
      },
    );

    it('is abandoned when nobody confirms it for a day', async () => {
      const { id } = await erasures.aboutMainObject(mainObject);
      await workOff();
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'counted' });
      await test.sql(`UPDATE erasure SET requested_at = now() - interval '25 hours'`);
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'abandoned' });
      expect(await test.sql('SELECT main_object FROM erasure')).toEqual([{ main_object: null }]);
      await test.sql(`UPDATE erasure SET requested_at = now() - interval '731 days'`);
      await work.sweep();
      expect(await test.sql('SELECT FROM erasure')).toEqual([]);
    });
  });

  describe('a day that is dropped', () => {
    const files = () => readdir(directory);

    it('is written to a file before, whole, and reported', async () => {
      const at = await makeDay(40);
      const keysOfDay = [];
      for (let nr = 0; nr < 40; nr++)
        keysOfDay.push(await add(at, 'delivered', { body: `{"nr":${nr},"text":"é\\n"}` }));
      await test.sql('ANALYZE');
      await dropOld();
      const date = new Date(at).toISOString().slice(0, 10);
      expect(await files()).toEqual([`heraut-${date}.ndjson.gz`]);
      const file = join(directory, `heraut-${date}.ndjson.gz`);
      const lines = gunzipSync(await readFile(file))
        .toString()
        .trimEnd()
        .split('\n');
      const rows = lines.map((line) => JSON.parse(line) as { table: string; row: Record<string, unknown> });
      const ofTable = (name: string) => rows.filter(({ table }) => table === name).map(({ row }) => row);
      expect(new Set(ofTable('notification').map(({ body }) => body))).toEqual(
        new Set(keysOfDay.map((_, nr) => `{"nr":${nr},"text":"é\\n"}`)),
      );
      expect(new Set(ofTable('delivery').map((row) => row.subscription_id))).toEqual(
        new Set(keysOfDay.map(({ subscriptionId }) => subscriptionId)),
      );
      expect(ofTable('attempt')).toHaveLength(40);
      expect(await report(at)).toMatchObject([
        {
          day: date,
          exported_file: file,
          exported_rows: 120,
          exported_bytes: (await stat(file)).size,
          notifications: 40,
          deliveries: 40,
          attempts: 40,
          dropped_at: expect.any(Date),
        },
      ]);
      await rm(file);
    });

    it('is read a few large rows at a time, also behind many small ones', async () => {
      const at = await makeDay(40);
      const small = Array.from({ length: 12 }, (_, nr) => uuidv7({ msecs: at + nr }));
      await insertNotifications(sql, small);
      const many = Array.from({ length: 24 }, (_, nr) => uuidv7({ msecs: at + 100 + nr }));
      await insertNotifications(sql, many, { body: JSON.stringify({ text: 'x'.repeat(large) }) });
      const details = JSON.stringify({ address: '192.0.2.1:80', headers: {}, body: 'x'.repeat(large) });
      await test.sql(
        `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, details)
         SELECT id, id, 1, 1, now(), 1, $2::json FROM unnest($1::uuid[]) AS n (id)`,
        [many, details],
      );
      const { manager } = test.postgres.upkeep;
      const pages: number[] = [];
      const query = async (text: string, values?: unknown[]) => {
        const rows = (await manager.query(text, values)) as { line?: string }[];
        pages.push(rows.reduce((sum, { line }) => sum + (line?.length ?? 0), 0));
        return rows;
      };
      const partitions = partitionsBetween(at, at);
      const exporting = exportDay({ query } as DropConnection, Math.floor(at / dayMs), partitions, {
        directory,
        stopping: running,
      });
      const { file, rows } = await exporting;
      expect(rows).toBe(12 + 24 + 24);
      const lines = gunzipSync(await readFile(file)).toString();
      for (const id of [...small, ...many]) expect(lines).toContain(`"id":"${id}"`);
      // 4 MiB, the row that makes them full, and the names of the columns.
      expect(Math.max(...pages)).toBeLessThan(4 * mebibyte + large + 10_000);
      expect(pages.filter((length) => length > 3 * mebibyte)).toHaveLength(4);
      await rm(file);
    });

    it('is kept while it cannot be exported, which is reported, and leaves no file', async () => {
      const at = await makeDay(40);
      const key = await add(at, 'delivered');
      const nowhere = join(directory, 'nowhere');
      await dropOld({ ...test.config.settings, EXPORT_DIR: nowhere });
      expect(await bodyOf(key)).not.toBeNull();
      expect(await report(at)).toMatchObject([
        { export_failure: expect.stringContaining('ENOENT'), export_failed_at: expect.any(Date), dropped_at: null },
      ]);
      expect(await files()).toEqual([]);
      await dropOld();
      expect(await report(at)).toMatchObject([{ export_failure: null, dropped_at: expect.any(Date) }]);
      expect(await files()).toHaveLength(1);
      await rm(join(directory, (await files())[0]!));
    });

    it('is not exported where that would fill the disk, and what a former try left goes', async () => {
      const at = await makeDay(40);
      await add(at, 'delivered');
      const date = new Date(at).toISOString().slice(0, 10);
      await writeFile(join(directory, `heraut-${date}.ndjson.gz.partial`), 'half');
      const { manager } = test.postgres.upkeep;
      const options = { directory, stopping: running, leaveFree: Number.MAX_SAFE_INTEGER };
      const exporting = exportDay(manager, Math.floor(at / dayMs), partitionsBetween(at, at), options);
      await expect(exporting).rejects.toThrow('must stay free');
      expect(await files()).toEqual([]);
    });

    it.each(['body', 'request_key'])(
      'is not exported with a %s that is erased meanwhile, but without it later',
      async (column) => {
        const at = await makeDay(40);
        const key = await add(at, 'delivered');
        await test.sql(`UPDATE notification SET request_key = 'secret'`);
        const { manager } = test.postgres.upkeep;
        const query = async (text: string, values?: unknown[]) => {
          const rows: unknown = await manager.query(text, values);
          if (text.includes(`FROM ${partitionOf('attempt', Math.floor(at / dayMs))} t`))
            await test.sql(`UPDATE notification SET ${column} = NULL`);
          return rows;
        };
        const connection = { query } as DropConnection;
        const exporting = exportDay(connection, Math.floor(at / dayMs), partitionsBetween(at, at), {
          directory,
          stopping: running,
        });
        await expect(exporting).rejects.toThrow('erased while it was written');
        expect(await files()).toEqual([]);
        await dropOld();
        const file = join(directory, (await files())[0]!);
        expect(gunzipSync(await readFile(file)).toString()).toMatch(`"id":"${key.notificationId}"`);
        expect(gunzipSync(await readFile(file)).toString()).toContain(`"${column}":null`);
        await rm(file);
      },
    );

    it('is not taken from a step of retention that has begun to note what it erases', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody else could take it
      const at = await makeDay(9);
      const key = await add(at, 'delivered');
      const table = partitionOf('notification', Math.floor(at / dayMs));
      const locks: unknown[] = [];
      const transaction = (work: (query: Query) => Promise<unknown>) =>
        test.postgres.transaction((query) =>
          work(async (statement, values) => {
            if (statement.name === 'lock-body-walk')
              locks.push(...(await test.sql('SELECT mode FROM pg_locks WHERE relation = $1::regclass', [table])));
            return query(statement, values);
          }),
        );
      const postgres = Object.create(test.postgres, { transaction: { value: transaction } }) as typeof test.postgres;
      await eraseOld(running, undefined, postgres);
      expect(await bodyOf(key)).toBeNull();
      expect(locks).toContainEqual({ mode: 'RowExclusiveLock' });
    });

    it('is dropped and noted as one, or neither', async () => {
      const at = await makeDay(40);
      const key = await add(at, 'delivered');
      await test.sql('INSERT INTO kept_body VALUES ($1)', [key.notificationId]);
      await test.sql('ALTER TABLE retention_day ADD CONSTRAINT full_disk CHECK (dropped_at IS NULL)');
      try {
        await expect(dropOld()).rejects.toThrow('full_disk');
      } finally {
        await test.sql('ALTER TABLE retention_day DROP CONSTRAINT full_disk');
      }
      expect(await test.sql('SELECT FROM kept_body')).toHaveLength(1);
      await dropOld();
      expect(await report(at)).toMatchObject([{ dropped_at: expect.any(Date), bytes: expect.any(Number) }]);
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
      for (const file of await files()) await rm(join(directory, file));
    });

    it('leaves the database to others while it is exported', async () => {
      const at = await makeDay(40);
      await add(at, 'delivered');
      const exported: string[] = [];
      await dropExpired(test.postgres, test.config.settings.RETENTION_DAYS, new Logger('test'), running, {
        copy: async (connection, { day }) => {
          await connection.query('SELECT 1');
          await insertDeliveries(sql, { notifications: 1, subscriptionIds: [randomUUID()], state: 'waiting' });
          exported.push(dateOf(day));
          return true;
        },
        asDropped: () => Promise.resolve(),
        afterwards: () => Promise.resolve(),
      });
      expect(exported).toEqual([dateOf(Math.floor(at / dayMs))]);
    });

    it('is not exported while a delivery is not finished', async () => {
      const at = await makeDay(40);
      await add(at, 'waiting');
      await dropOld();
      expect(await files()).toEqual([]);
      expect(await report(at)).toMatchObject([{ kept_at: expect.any(Date), exported_at: null, dropped_at: null }]);
    });
  });
});
