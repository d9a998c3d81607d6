import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { Upkeep } from '../../src/dispatching/upkeep.service.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import { deadStates, type DeliveryKey, type DeliveryState } from '../../src/ledger/delivery.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { lowestId, lowestIdAt } from '../../src/ledger/partitions.js';
import { readBodies, readBodySizes } from '../../src/ledger/read-bodies.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { rowsTogether } from '../../src/ledger/walk-deliveries.js';
import { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { BodyRetention } from '../../src/retention/body-retention.service.js';
import { DayDropper } from '../../src/retention/day-dropper.service.js';
import type { ErasureWork } from '../../src/retention/erasure-work.service.js';
import type { ReplayRunner } from '../../src/replays/replay-runner.service.js';
import type { SigningKeys } from '../../src/subscriptions/signing-keys.service.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import { eventually } from '../support/eventually.js';
import type { TestLedger } from '../support/ledger.js';
import { dayMs, running, waysOfSendingAgain, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('the retention of bodies on the $name stack', (stack) => {
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

  describe('erases bodies', () => {
    it('that are past their days, with what receivers answered, and nothing else', async () => {
      const [old, young] = [await retention.makeDay(9), await retention.makeDay(7)];
      const erased = await retention.add(old, 'failed');
      const kept = await retention.add(young, 'failed');
      await retention.eraseOld();
      expect(await retention.bodyOf(erased)).toBeNull();
      expect(await retention.everythingOf(erased)).not.toContain('secret');
      expect(await test.row(erased)).toMatchObject({ state: 'failed', last_status: 500, last_error: 'HTTP 500' });
      const details = { address: '192.0.2.1:80', headers: null, body: null };
      expect(await test.attempts(erased)).toMatchObject([{ status: 500, error: 'HTTP 500', details }]);
      expect(await retention.bodyOf(kept)).not.toBeNull();
    });

    it('of each channel after the days that it has of its own', async () => {
      await retention.setDays({ short: 2, long: 20 });
      const [four, nine] = [await retention.makeDay(4), await retention.makeDay(9)];
      const added = await Promise.all(
        [four, nine].flatMap((at) =>
          ['cases', 'short', 'long'].map((channel) => retention.add(at, 'delivered', { channel })),
        ),
      );
      const hasBody = () => Promise.all(added.map(async (key) => (await retention.bodyOf(key)) !== null));
      await retention.eraseOld();
      expect(await hasBody()).toEqual([true, false, true, false, false, true]);
      // It is given fewer days later: it has a walk of its own, through the days that were walked through before.
      await retention.setDays({ long: 3 });
      await retention.eraseOld();
      expect(await hasBody()).toEqual([true, false, false, false, false, false]);
      expect(await retention.report(four, nine)).toMatchObject([
        { erased_channels: ['long', 'short'], bodies_erased: 2 },
        { erased_channels: ['cases', 'long', 'short'], bodies_erased: 3, body_bytes: 36 },
      ]);
    });

    it('of a channel that was removed after the days that it had', async () => {
      await retention.setDays({ short: 2, long: 20 });
      const at = await retention.makeDay(4);
      const [short, long] = await Promise.all(
        ['short', 'long'].map((channel) => retention.add(at, 'delivered', { channel })),
      );
      await test.sql('UPDATE channel SET deleted_at = now()');
      await retention.eraseOld();
      expect([await retention.bodyOf(short!), await retention.bodyOf(long!)]).toEqual([null, expect.any(String)]);
    });

    it.each(['queued', 'waiting', 'held', 'sending'] as const)(
      'not while a delivery is %s, but when it has ended',
      async (state) => {
        const at = await retention.makeDay(9);
        const key = await retention.add(at, state);
        await retention.eraseOld();
        expect(await retention.bodyOf(key)).not.toBeNull();
        expect(await retention.report(at)).toMatchObject([{ bodies_erased: 0, bodies_kept: 1 }]);
        await retention.eraseOld();
        expect(await retention.bodyOf(key)).not.toBeNull();
        await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
        await retention.eraseOld();
        expect(await retention.bodyOf(key)).toBeNull();
        expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
        expect(await retention.report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 0 }]);
      },
    );

    it.each(deadStates)(
      'not of one of which a delivery is %s since less than a week, but then, or when an operator has closed it',
      async (state) => {
        const at = await retention.makeDay(9);
        const keys = [await retention.add(at, 'waiting'), await retention.add(at, 'waiting')];
        const [key, closed] = keys as [DeliveryKey, DeliveryKey];
        const fresh = await retention.add(at, state);
        const ends = (of: DeliveryKey, next: DeliveryState, ago: string) =>
          test.sql(
            `UPDATE delivery SET state = $2, next_at = NULL, ended_at = now() - $3::interval WHERE notification_id = $1`,
            [of.notificationId, next, ago],
          );
        await ends(fresh, state, '1 hour');
        await retention.eraseOld();
        for (const each of keys) await ends(each, state, '6 days');
        await retention.eraseOld();
        for (const each of [...keys, fresh]) expect(await retention.everythingOf(each)).toContain('HTTP 500: {');
        expect(await retention.report(at)).toMatchObject([{ bodies_erased: 0, bodies_kept: 3 }]);
        await ends(key, state, '8 days');
        await ends(closed, 'cancelled', '1 hour');
        await retention.eraseOld();
        for (const each of keys) expect(await retention.everythingOf(each)).not.toContain('secret');
        expect(await retention.bodyOf(fresh)).not.toBeNull();
        expect(await retention.report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 1 }]);
      },
    );

    it('not of a dead letter that a running replay has yet to come to, but when the replay is past it', async () => {
      const at = await retention.makeDay(9);
      const keys: DeliveryKey[] = [];
      for (const [ms, state] of [
        ...([0, 10, 20] as const).map((ms) => [ms, 'failed'] as const),
        [11, 'expired'],
      ] as const)
        keys.push(await retention.add(at + ms, state));
      const [passed, meant, later, ofAnotherState] = keys as [DeliveryKey, DeliveryKey, DeliveryKey, DeliveryKey];
      await test.sql(`UPDATE delivery SET next_at = NULL, ended_at = now() - interval '8 days'`);
      const id = uuidv7();
      await test.sql(
        `INSERT INTO replay (id, kind, selection, states, only_missed, rate_per_second, state, counted, is_count_whole,
           after_notification, after_subscription, before_id)
         VALUES ($1, 'replay', '{}', '{failed}', true, 0.1, 'running', 1, true, $2, $3, $4)`,
        [id, lowestIdAt(at + 5), lowestId, lowestIdAt(at + 15)],
      );
      onTestFinished(async () => void (await test.sql('DELETE FROM replay WHERE id = $1', [id])));
      const hasBody = () => Promise.all(keys.map(async (key) => (await retention.bodyOf(key)) !== null));
      await retention.eraseOld();
      expect(await retention.everythingOf(meant)).toContain('HTTP 500: {');
      expect(await hasBody()).toEqual([passed, meant, later, ofAnotherState].map((key) => key === meant));
      await test.sql('UPDATE replay SET after_notification = $2 WHERE id = $1', [id, lowestIdAt(at + 12)]);
      await retention.eraseOld();
      expect(await hasBody()).toEqual([false, false, false, false]);
    });

    it.each(['scheduled', 'paused', 'done'])('of a dead letter that a replay means which is %s', async (state) => {
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'failed');
      const id = uuidv7();
      onTestFinished(async () => void (await test.sql('DELETE FROM replay WHERE id = $1', [id])));
      await test.sql(
        `INSERT INTO replay (id, kind, selection, states, only_missed, state, counted, is_count_whole,
           after_notification, after_subscription, before_id, ended_at)
         VALUES ($1, 'replay', '{}', '{failed}', true, $2::text, 1, true, $3, $3, $4, CASE WHEN $2::text = 'done' THEN now() END)`,
        [id, state, lowestId, lowestIdAt(Date.now())],
      );
      await retention.eraseOld();
      expect(await retention.bodyOf(key)).toBeNull();
    });

    it('not of a dead letter that an operator is about to have sent again', async () => {
      const key = await retention.add(await retention.makeDay(9), 'failed');
      await test.sql('UPDATE delivery SET ended_at = now()');
      await retention.eraseOld();
      expect(await retryNow(test.postgres, key)).toBe('retried');
    });

    it('not of one that is scheduled for later, whose publisher may still replace it, but when its time is over', async () => {
      const at = await retention.makeDay(9);
      const [key, ended] = [await retention.add(at, 'cancelled'), await retention.add(at, 'cancelled')];
      const scheduleFor = (when: string) =>
        test.sql(`UPDATE notification SET not_before = now() + $2::interval WHERE id = $1`, [key.notificationId, when]);
      await scheduleFor('1 day');
      await retention.eraseOld();
      expect([await retention.bodyOf(key), await retention.bodyOf(ended)]).toEqual([expect.any(String), null]);
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 1 }]);
      await scheduleFor('-1 second');
      await retention.eraseOld();
      expect(await retention.bodyOf(key)).toBeNull();
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 0 }]);
    });

    it('of a day once, in steps, going on where it was when the process was stopped', async () => {
      const at = await retention.makeDay(9);
      const ids = Array.from({ length: 2500 }, () => uuidv7({ msecs: at }));
      await insertNotifications(retention.sql, ids);
      const stopping = new AbortController();
      await retention.eraseOld(stopping.signal, { pause: () => Promise.resolve(stopping.abort()) });
      expect(await retention.report(at)).toMatchObject([
        { walk_channels: ['cases'], bodies_erased: 1000, bodies_erased_at: null },
      ]);
      await retention.eraseOld();
      const after = await retention.report(at);
      expect(after).toMatchObject([{ walk_channels: null, bodies_erased: 2500, bodies_erased_at: expect.any(Date) }]);
      await retention.eraseOld();
      expect(await retention.report(at)).toEqual(after);
    });
  });

  describe('by a clock of Postgres that is more than a day from its own', () => {
    const [swept, retained] = [
      ['erase-signing-keys', 'sweep-replays', 'sweep-erasures'],
      ['sweep-keys', 'drop-partitions', 'erase-old-bodies', 'drop-audit-months'],
    ];
    const retaining = [...swept, ...retained].toSorted();
    let sweeps: string[] = [];

    /** As a dispatcher has them; of the others nothing is called. */
    function tasksOf(clock: Clock) {
      const none = undefined as never;
      const sweep = (name: string) => () => Promise.resolve(sweeps.push(name));
      const signingKeys = { eraseEnded: sweep('erase-signing-keys') } as unknown as SigningKeys;
      const replays = { sweep: sweep('sweep-replays') } as unknown as ReplayRunner;
      const erasures = { sweep: sweep('sweep-erasures') } as unknown as ErasureWork;
      const { postgres, config } = test;
      const ledgerClock = new LedgerClock(postgres, clock);
      const bodies = new BodyRetention(postgres, ledgerClock, clock, config);
      const days = new DayDropper(postgres, { settings: { ...config.settings, EXPORT_DIR: undefined } });
      const upkeep = new Upkeep(
        postgres,
        config,
        none,
        ledgerClock,
        none,
        none,
        none,
        signingKeys,
        replays,
        erasures,
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
        const [expired, old] = [await retention.makeDay(40), await retention.makeDay(9)];
        await retention.add(expired, 'delivered');
        const key = await retention.add(old, 'delivered');
        await test.sql(
          "CREATE TABLE audit_entry_200001 PARTITION OF audit_entry FOR VALUES FROM ('2000-01-01') TO ('2000-02-01')",
        );
        sweeps = [];
        await test.sql(
          `INSERT INTO once_key (application, operation, key, result_id, expires_at)
           VALUES ('portal', 'publish', 'k', gen_random_uuid(), now() - interval '1 hour')`,
        );
        const kept = async () => {
          const [row] = await test.sql<{ month: boolean; requestKey: boolean }>(
            `SELECT to_regclass('audit_entry_200001') IS NOT NULL AS month,
               EXISTS (SELECT FROM once_key WHERE key = 'k') AS "requestKey"`,
          );
          const [day] = await retention.report(expired);
          return { ...row, body: (await retention.bodyOf(key)) !== null, isDropped: day?.dropped_at instanceof Date };
        };
        const warned = vi.spyOn(Logger.prototype, 'warn');
        const apart: Clock = { pause: systemClock.pause, now: () => systemClock.now() + aheadDays * dayMs };
        const tasks = tasksOf(apart);
        // A second time within the hour, of which nothing more is said.
        for (const { run } of [...tasks, ...tasks]) await run(running);
        expect(await kept()).toEqual({ month: true, requestKey: true, body: true, isDropped: false });
        expect(sweeps).toEqual([]);
        expect(warned.mock.calls.map(([said]) => said)).toEqual(
          retaining.map(() => expect.objectContaining({ event: 'retention.clocks-apart' })),
        );
        expect(warned.mock.calls.map(([{ task }]) => task).toSorted()).toEqual(retaining);
        warned.mockRestore();
        for (const { run } of tasksOf(systemClock)) await run(running);
        expect(await kept()).toEqual({ month: false, requestKey: false, body: false, isDropped: true });
        expect(sweeps).toEqual(swept);
      },
    );
  });

  describe('a round of a dispatcher', () => {
    it('drops days when it has erased what they should not have any more', () => {
      // The others do the work, which is not done here.
      const parts = [test.postgres, test.config] as unknown as ConstructorParameters<typeof Upkeep>;
      const names = new Upkeep(...parts).tasks.map(({ name }) => name);
      expect(names.indexOf('drop-partitions')).toBeGreaterThan(names.indexOf('erase-old-bodies'));
      expect(names.indexOf('drop-partitions')).toBeGreaterThan(names.indexOf('work-off-erasures'));
    });
  });

  describe('what retention erases', () => {
    it('may have any number of deliveries: no statement takes more of them than it can', async () => {
      const at = await retention.makeDay(9);
      const ids = Array.from({ length: 4 }, () => uuidv7({ msecs: at }));
      await retention.addMany(ids, rowsTogether / 2, 'failed');
      await retention.withFewRowsAStatement(at, () => retention.eraseOld());
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 4, walk_channels: null }]);
      expect(await test.sql('SELECT FROM notification WHERE body IS NOT NULL')).toEqual([]);
      expect(await test.sql(`SELECT FROM delivery WHERE last_error <> 'HTTP 500'`)).toEqual([]);
      expect(await test.sql(`SELECT FROM attempt WHERE error <> 'HTTP 500'`)).toEqual([]);
    });

    it('is kept where any of many deliveries is not finished, and the others are not', async () => {
      const at = await retention.makeDay(9);
      const ids = Array.from({ length: 3 }, () => uuidv7({ msecs: at }));
      await retention.addMany(ids, rowsTogether / 2, 'failed');
      await test.sql(
        `UPDATE delivery SET state = 'waiting' WHERE notification_id = $1
           AND subscription_id = (SELECT max(subscription_id::text)::uuid FROM delivery)`,
        [ids[1]],
      );
      await retention.eraseOld();
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 1 }]);
      expect(await test.sql('SELECT id FROM notification WHERE body IS NOT NULL')).toEqual([{ id: ids[1] }]);
    });

    it('is erased although an earlier day fails, which is told', async () => {
      const [earlier, later] = [await retention.makeDay(10), await retention.makeDay(9)];
      const [failing, erased] = [await retention.add(earlier, 'failed'), await retention.add(later, 'failed')];
      const kept = await retention.add(later, 'waiting');
      await test.sql(
        `ALTER TABLE notification ADD CONSTRAINT full_disk CHECK (id <> '${failing.notificationId}' OR body IS NOT NULL) NOT VALID`,
      );
      try {
        await expect(retention.eraseOld()).rejects.toThrow('full_disk');
        expect(await retention.bodyOf(erased)).toBeNull();
        await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
        await expect(retention.eraseOld()).rejects.toThrow('full_disk');
        expect(await retention.bodyOf(kept)).toBeNull();
      } finally {
        await test.sql('ALTER TABLE notification DROP CONSTRAINT full_disk');
      }
      await retention.eraseOld();
      expect(await retention.bodyOf(failing)).toBeNull();
    });
  });

  describe('what is sent again while retention looks through its deliveries', () => {
    it.each(waysOfSendingAgain)('keeps its text until it has ended: %s', async (_, send) => {
      const at = await retention.makeDay(9);
      const [key, other] = [await retention.add(at, 'failed'), await retention.add(at, 'failed')];
      await retention.eraseOldWhile(() => send(retention, key));
      expect(await retention.bodyOf(key)).not.toBeNull();
      expect(await retention.bodyOf(other)).toBeNull();
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 1, walk_channels: null }]);
      await retention.fail(key);
      await retention.eraseOld();
      expect(await retention.everythingOf(key)).not.toContain('secret');
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 2, bodies_kept: 0 }]);
    });

    it('leaves no answer where it has ended before its text went', async () => {
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'failed');
      const postgres = retention.withMeanwhile(async () => {
        await retryNow(test.postgres, key);
        await retention.fail(key);
      });
      await retention.eraseOld(running, undefined, postgres);
      expect(await retention.everythingOf(key)).not.toContain('secret');
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 1, bodies_kept: 0 }]);
    });

    it('keeps its text also where it was kept before', async () => {
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'waiting');
      await retention.eraseOld();
      await retention.fail(key);
      await retention.eraseOldWhile(() => retryNow(test.postgres, key));
      expect(await retention.bodyOf(key)).not.toBeNull();
      expect(await retention.report(at)).toMatchObject([{ bodies_erased: 0, bodies_kept: 1 }]);
      await retention.fail(key);
      await retention.eraseOld();
      expect(await retention.everythingOf(key)).not.toContain('secret');
    });

    it('keeps its text where that is committed while retention waits for it', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody can wait for another
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'failed');
      await test.sql('UPDATE delivery SET last_error = NULL'); // nothing of the delivery itself is waited for
      const erasing = await test.postgres.transaction(async (query) => {
        await retention.sendAgain(key, {}, query);
        const begun = retention.eraseOld();
        const waiting = `SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%is_as_read%'`;
        await eventually(async () => (await test.sql(waiting)).length > 0);
        return { begun };
      });
      await erasing.begun;
      expect(await retention.bodyOf(key)).not.toBeNull();
      expect(await test.state(key)).toBe('waiting');
    });
  });

  describe('of an erased body', () => {
    it('nothing is read, nothing is sent, and nobody can have it sent again', async () => {
      const ended = await retention.add(await retention.makeDay(9), 'failed');
      await retention.eraseOld();
      expect(await readBodies(test.postgres, [ended.notificationId])).toEqual(new Map());
      expect(await readBodySizes(test.postgres, [ended.notificationId])).toEqual(new Map());
      expect(await retryNow(test.postgres, ended)).toBe('erased');
      expect(await retention.sendAgain(ended)).toBe(0);
      expect(await retention.sendAgain(ended, { isNew: true, subscriptionId: randomUUID() })).toBe(0);
      expect(await test.state(ended)).toBe('failed');
      // One that was retried at the moment of its erasure is handed out without a body, which ends it.
      await test.sql(`UPDATE delivery SET state = 'waiting', next_at = now()`);
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ ...ended, body: null }]);
    });
  });
});
