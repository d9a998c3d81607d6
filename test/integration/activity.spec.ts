import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  addActivity,
  granularities,
  hours,
  minutes,
  readSeries,
  readTotals,
  readTotalsOf,
  sweepActivity,
  tens,
} from '../../src/activity/activity-rows.js';
import { noCounts, Tally, type Counts } from '../../src/activity/tally.js';
import { TallyWriter } from '../../src/activity/tally-writer.service.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { readRecentActivity } from '../../src/overview/recent-activity.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

const dayMs = 86_400_000;

describe.each(stacks)('what processes have counted, on the $name stack', (stack) => {
  let test: TestLedger;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  afterAll(() => test.close());
  beforeEach(() => test.sql('DELETE FROM activity'));

  const writerOf = (tally: Tally, events = new OperationalEvents(), postgres = test.postgres) =>
    new TallyWriter(tally, postgres, test.ledgerClock, events);
  const all = { kind: 'all', id: '' } as const;
  const longAgo = () => Date.now() - 600_000;
  const sums = async (subject: Parameters<typeof readSeries>[1], { seconds }: { seconds: number }) =>
    [...(await readSeries(test.postgres, subject, seconds, longAgo() - 3_600_000)).values()].reduce(
      (sum, counts) =>
        Object.fromEntries(Object.entries(sum).map(([name, count]) => [name, count + counts[name as keyof Counts]])),
      noCounts() as object,
    );

  it('is added to what others have, in buckets of every length that is read', async () => {
    const [one, other] = [new Tally(), new Tally()];
    one.accepted('cases', 'publisher');
    for (const tally of [one, other]) tally.delivered('s1', 8);
    other.failedAttempt('s1');
    await writerOf(one).write();
    await writerOf(other).write();
    const delivered = { ...noCounts(), delivered: 2, failedAttempts: 1 };
    for (const granularity of granularities)
      expect(await sums(all, granularity)).toEqual({ ...delivered, accepted: 1 });
    expect(await sums({ kind: 'subscription', id: 's1' }, minutes)).toEqual(delivered);
    expect(await sums({ kind: 'subscription', id: 's1' }, hours)).toEqual(delivered);
    expect(await sums({ kind: 'subscription', id: 's1' }, tens)).toEqual(noCounts());
    expect(await sums({ kind: 'channel', id: 'cases' }, hours)).toEqual({ ...noCounts(), accepted: 1 });
    expect(await sums({ kind: 'took', id: '13' }, minutes)).toEqual({ ...noCounts(), delivered: 2 });
  });

  it('is delivered last when a call succeeded, not when its subscriber fetched something', async () => {
    const tally = new Tally();
    tally.fetched('fetches', 1);
    tally.delivered('both', 8);
    tally.fetched('both', 1);
    await writerOf(tally).write();
    tally.fetched('both', 1);
    await writerOf(tally).write();
    expect(
      await test.sql(
        `SELECT id, sum(delivered)::int AS delivered, max(last_delivered_at) IS NOT NULL AS was_called FROM activity
         WHERE kind = 'subscription' AND bucket_seconds = 3600 GROUP BY id ORDER BY id`,
      ),
    ).toEqual([
      { id: 'both', delivered: 3, was_called: true },
      { id: 'fetches', delivered: 1, was_called: false },
    ]);
    expect(await sums({ kind: 'fetched', id: '' }, minutes)).toEqual({ ...noCounts(), delivered: 3 });
  });

  it('is compared as of one moment: what is fetched meanwhile is no call, neither failed nor made', async () => {
    const now = await test.now();
    const count = (all: object, fetched: number) =>
      addActivity(
        (statement, values) => test.postgres.query(statement, values),
        [
          { kind: 'all', id: '', counts: { ...noCounts(), ...all } },
          { kind: 'fetched', id: '', counts: { ...noCounts(), delivered: fetched } },
        ],
        now - 60_000,
      );
    await count({ delivered: 110, failedAttempts: 100 }, 10);
    // After each statement, more is fetched than there were calls.
    let before: Promise<unknown> = Promise.resolve();
    const busy = Object.assign(Object.create(test.postgres) as typeof test.postgres, {
      queryAside: (...asked: Parameters<typeof test.postgres.queryAside>) => {
        const rows = before.then(() => test.postgres.queryAside(...asked));
        before = rows.then(() => count({ delivered: 1000 }, 1000));
        return rows;
      },
    });
    expect((await readRecentActivity(busy, now)).lastMinutes.successRate).toBe(0.5);
    await before;
  });

  it('never makes less than no calls, whatever was counted twice', async () => {
    const now = await test.now();
    const items = [
      { ...all, counts: { ...noCounts(), delivered: 10, failedAttempts: 5 } },
      { kind: 'fetched', id: '', counts: { ...noCounts(), delivered: 20 } },
    ] as const;
    await addActivity((statement, values) => test.postgres.query(statement, values), items, now - 60_000);
    expect((await readRecentActivity(test.postgres, now)).lastMinutes.successRate).toBe(0);
  });

  it('is in the bucket of the time at which it happened', async () => {
    const counts = { ...noCounts(), accepted: 1 };
    const at = Date.parse('2026-11-22T12:34:56.789Z');
    await addActivity((statement, values) => test.postgres.query(statement, values), [{ ...all, counts }], at);
    const times = await test.sql<{ at: Date }>('SELECT at FROM activity ORDER BY bucket_seconds');
    expect(times.map(({ at: time }) => time.toISOString())).toEqual([
      '2026-11-22T12:34:50.000Z',
      '2026-11-22T12:34:00.000Z',
      '2026-11-22T12:00:00.000Z',
    ]);
    const [bucket] = await readSeries(test.postgres, all, minutes.seconds, at - 3_600_000);
    expect(bucket).toEqual([Date.parse('2026-11-22T12:34:00Z'), counts]);
  });

  it('is what became a dead letter, too, however it did', async () => {
    const [tally, events] = [new Tally(), new OperationalEvents()];
    const writer = writerOf(tally, events);
    writer.onApplicationBootstrap();
    const dead = { event: 'delivery.dead', notificationId: null, state: 'failed', reason: null } as const;
    events.report({ ...dead, subscriptionId: 's1', count: 1000 });
    await writer.onApplicationShutdown(); // the rest is written
    expect(await sums({ kind: 'subscription', id: 's1' }, minutes)).toEqual({ ...noCounts(), gaveUp: 1000 });
  });

  it('is kept in memory while it cannot be written, once', async () => {
    const tally = new Tally();
    let isAway = true;
    const unreliable = Object.assign(Object.create(test.postgres) as typeof test.postgres, {
      transactionAside: (work: Parameters<typeof test.postgres.transactionAside>[0]) =>
        isAway ? Promise.reject(new Error('away')) : test.postgres.transactionAside(work),
    });
    const writer = writerOf(tally, new OperationalEvents(), unreliable);
    tally.accepted('cases', 'publisher');
    await writer.write();
    tally.accepted('cases', 'publisher');
    isAway = false;
    await writer.write();
    await writer.write();
    expect(await sums(all, minutes)).toEqual({ ...noCounts(), accepted: 2 });
  });

  describe('after the clock of Postgres was set back', () => {
    const delivered = async (at: number) => {
      const items = [{ kind: 'subscription', id: 's1', counts: { ...noCounts(), delivered: 1 } } as const];
      await test.postgres.transaction((query) => addActivity(query, items, at));
    };
    const lastDelivered = async () => {
      const [row] = await test.sql<{ at: Date | null; is_ahead: boolean }>(
        'SELECT last_delivered_at AS at, last_delivered_at > now() AS is_ahead FROM activity WHERE bucket_seconds = 3600',
      );
      return row!;
    };

    it('is written at a time that is over', async () => {
      const tally = new Tally();
      let now = Date.now() + dayMs;
      const writer = new TallyWriter(tally, test.postgres, { now: () => now } as LedgerClock, new OperationalEvents());
      await writer.write();
      now = Date.now();
      tally.delivered('s1', 8);
      await writer.write();
      expect((await lastDelivered()).is_ahead).toBe(false);
    });

    it('was delivered last when something was delivered since then, not when something failed', async () => {
      await delivered(Date.now());
      await test.sql(`UPDATE activity SET last_delivered_at = now() + interval '10 minutes'`);
      const failed = { kind: 'subscription', id: 's1', counts: { ...noCounts(), failedAttempts: 1 } } as const;
      const [{ at }] = (await test.sql<{ at: Date }>('SELECT at FROM activity WHERE bucket_seconds = 3600')) as [
        { at: Date },
      ];
      await test.postgres.transaction((query) => addActivity(query, [failed], at.getTime()));
      expect((await lastDelivered()).is_ahead).toBe(true);
      await delivered(at.getTime());
      expect((await lastDelivered()).is_ahead).toBe(false);
    });

    it('is neither shown nor totalled where it lies ahead', async () => {
      await delivered(Date.now());
      await delivered(Date.now() + 2 * 3_600_000);
      expect(await sums({ kind: 'subscription', id: 's1' }, minutes)).toEqual({ ...noCounts(), delivered: 1 });
      const [total] = await readTotals(test.postgres, 'subscription', hours.seconds, longAgo() - 3_600_000, '', 10);
      expect(total!.counts).toEqual({ ...noCounts(), delivered: 1 });
    });

    it('is removed where it was counted for times that are far ahead, a bounded number at a time', async () => {
      await delivered(Date.now());
      for (let hour = 2; hour < 6; hour++) await delivered(Date.now() + hour * 3_600_000);
      expect(await sweepActivity(test.postgres, 3)).toBe(3);
      expect(await sweepActivity(test.postgres, 3)).toBe(1);
      expect(await sweepActivity(test.postgres, 3)).toBe(0);
      expect(await test.sql('SELECT FROM activity')).toHaveLength(2);
    });
  });

  it('may be of thousands of subscriptions, which are written some at a time, and totalled page by page', async () => {
    const tally = new Tally();
    for (let nr = 0; nr < 2500; nr++) tally.delivered(`s${String(nr).padStart(4, '0')}`, 5);
    await writerOf(tally).write();
    const page = (after: string, limit: number) =>
      readTotals(test.postgres, 'subscription', hours.seconds, longAgo() - 3_600_000, after, limit);
    const first = await page('', 2000);
    expect([first.length, first.at(-1)!.id, first[0]!.counts]).toEqual([
      2000,
      's1999',
      { ...noCounts(), delivered: 1 },
    ]);
    expect(Math.abs(first[0]!.lastAt.getTime() - Date.now())).toBeLessThan(600_000);
    expect((await page('s1999', 2000)).length).toBe(500);
    const some = ['s2400', 's0007', 'none'];
    const ofSome = await readTotalsOf(test.postgres, 'subscription', hours.seconds, longAgo() - 3_600_000, some);
    expect(ofSome.map(({ id, counts }) => [id, counts.delivered])).toEqual([
      ['s0007', 1],
      ['s2400', 1],
    ]);
    expect(await sums(all, tens)).toEqual({ ...noCounts(), delivered: 2500 });
  });

  it('is removed when it is kept no longer, a bounded number at a time', async () => {
    const aged = (seconds: number, age: number) =>
      test.sql(
        `INSERT INTO activity SELECT $1, 'channel', n::text, now() - $2::float8 * interval '1 s', 1, 0, 0, 0, 0, now()
         FROM generate_series(1, 5) AS n`,
        [seconds, age],
      );
    for (const { seconds, keptSeconds } of granularities) {
      await aged(seconds, keptSeconds + 60);
      await aged(seconds, keptSeconds - 60);
    }
    expect(await sweepActivity(test.postgres, 3)).toBe(3);
    expect(await sweepActivity(test.postgres, 3)).toBe(2);
    expect(await sweepActivity(test.postgres, 3)).toBe(0);
    const left = await test.sql<{ count: string }>('SELECT count(*) AS count FROM activity');
    expect(Number(left[0]!.count)).toBe(15);
  });
});
