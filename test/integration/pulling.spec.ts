import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { mostNotifications, writeDigests } from '../../src/digests/write-digests.js';
import { systemClock } from '../../src/infra/clock.js';
import type { Query } from '../../src/infra/postgres/postgres.js';
import { readDays } from '../../src/ledger/days.js';
import { outdateDigests } from '../../src/ledger/digests.js';
import { endFetched, fetchedBySubscriber } from '../../src/ledger/end-fetched.js';
import { lowestId, lowestIdAt } from '../../src/ledger/partitions.js';
import { readSettings } from '../../src/config/settings.js';
import { publishingLimits } from '../../src/publishing/publishing-limits.js';
import { page } from '../../src/pulling/find-fetched.js';
import { Arrivals } from '../../src/pulling/arrivals.service.js';
import { readHorizon } from '../../src/ledger/horizon.js';
import type { PullCursor } from '../../src/pulling/pull-cursor.js';
import { Fetches } from '../../src/pulling/fetches.service.js';
import { PullService } from '../../src/pulling/pull.service.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { newNotification, TestLedger } from '../support/ledger.js';
import { newDelivery } from '../support/new-delivery.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

/** Of the values of the statement that reads them. */
const windowsIn = (values: unknown[]): string[][] => {
  const [afters, ends] = ['window_after', 'window_end'].map(
    (name) => values[page.parameters.indexOf(name)] as string[],
  );
  return afters!.map((after, nr) => [after, ends![nr]!]);
};

const never = new AbortController().signal;
/** As the processes of these tests have it. */
const timeoutS = readSettings({}).DATABASE_TIMEOUT;
const start: PullCursor = { after: lowestIdAt(0), seen: [] };

describe.each(stacks)('what a subscriber fetches on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let arrivals: Arrivals;
  let pulling: PullService;
  let subscriptionId: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
    await test.heartbeat.onApplicationBootstrap();
    arrivals = new Arrivals(test.postgres, test.ledgerClock);
    pulling = new PullService(test.postgres, arrivals, new Fetches(test.postgres, test.config), test.config);
  });
  beforeEach(() => {
    subscriptionId = randomUUID();
  });
  afterEach(() => test.clear());
  afterAll(async () => {
    arrivals.onModuleDestroy();
    await test.heartbeat.stop();
    await test.close();
    await prepared.release();
  });

  const fetcher = (of = subscriptionId, clientId = 'subscriber') => ({ subscriptionId: of, clientId });
  const ago = (ms: number) => uuidv7({ msecs: Date.now() - ms });

  async function insert(ids: string[], of = subscriptionId, body = '{}'): Promise<void> {
    await insertNotifications(test.sql.bind(test), ids, { body });
    await insertDeliveries(test.sql.bind(test), { notifications: ids, subscriptionIds: [of], state: 'delivered' });
  }

  /** Until nothing is left. */
  async function fetchAll(
    cursor = start,
    limit = 100,
    rangeRows?: number,
  ): Promise<{ ids: string[]; next: PullCursor }> {
    const ids: string[] = [];
    for (let next = cursor; ;) {
      const page = await pulling.look(subscriptionId, next, limit, rangeRows);
      ids.push(...page.notifications.map(({ id }) => id));
      next = page.next;
      if (!page.isMore) return { ids, next };
    }
  }

  it('comes in order, page by page, and is its own alone', async () => {
    const ids = Array.from({ length: 25 }, (_, nr) => ago(600_000 - nr * 1000));
    await insert([...ids].reverse());
    await insert([ago(500_000), ago(400_000)], randomUUID());
    const { ids: fetched, next } = await fetchAll(start, 10);
    expect(fetched).toEqual(ids);
    expect(next.seen).toEqual([]);
    const later = ago(0);
    await insert([later]);
    expect((await fetchAll(next)).ids).toEqual([later]);
    expect((await fetchAll({ after: ids[19]!, seen: [] })).ids).toEqual([...ids.slice(20), later]);
  });

  it('is searched in limited ranges, with a cursor that moves although nothing was found', async () => {
    await insert(
      Array.from({ length: 20 }, (_, nr) => ago(600_000 - nr * 1000)),
      randomUUID(),
    );
    const own = [ago(590_500), ago(300_000)];
    await insert(own);
    expect((await fetchAll(start, 1, 3)).ids).toEqual(own);
  });

  it('is read where digests say that it may be, and where there are none; of the rest nothing is', async () => {
    const ledgerMs = await test.now();
    const others = Array.from({ length: 4 * mostNotifications }, (_, nr) =>
      uuidv7({ msecs: ledgerMs - 3_600_000 + nr }),
    );
    await insert(others, randomUUID());
    const own = [others[10]!, others[2 * mostNotifications + 5]!, others[2 * mostNotifications + 6]!];
    await insertDeliveries(test.sql.bind(test), {
      notifications: own,
      subscriptionIds: [subscriptionId],
      state: 'failed',
    });
    await writeDigests(test.postgres, ledgerMs, never, systemClock);
    const [before, after] = [uuidv7({ msecs: ledgerMs - 7_200_000 }), uuidv7({ msecs: ledgerMs - 60_000 })];
    await insert([before, after]);

    const query = vi.spyOn(test.postgres.dataSource, 'query');
    try {
      expect((await fetchAll()).ids).toEqual([before, ...own, after]);
      expect((await fetchAll({ after: own[1]!, seen: [] })).ids).toEqual([own[2], after]);
      expect((await fetchAll(start, 1, 3)).ids).toEqual([before, ...own, after]);
      const read = query.mock.calls
        .filter(([text]) => text === page.text)
        .flatMap(([, values]) => windowsIn(values as unknown[]));
      const isRead = (id: string) => read.some(([from, to]) => id > from! && id <= to!);
      const withNone = [others.slice(mostNotifications, 2 * mostNotifications), others.slice(3 * mostNotifications)];
      expect(withNone.flat().filter(isRead)).toEqual([]);
      expect([before, ...own, after].filter(isRead)).toEqual([before, ...own, after]);
    } finally {
      query.mockRestore();
    }

    // As a replay does.
    const late = others[mostNotifications + 7]!;
    await test.postgres.transaction((run) => outdateDigests(run, [late]));
    await insertDeliveries(test.sql.bind(test), {
      notifications: [late],
      subscriptionIds: [subscriptionId],
      state: 'failed',
    });
    expect((await fetchAll()).ids).toEqual([before, own[0], late, own[1], own[2], after]);
  });

  it('is read in spite of a digest that reaches beyond what can still be committed: Postgres has set its clock back', async () => {
    const ledgerMs = await test.now();
    const others = Array.from({ length: mostNotifications }, (_, nr) => uuidv7({ msecs: ledgerMs + nr }));
    await insert(others, randomUUID());
    await writeDigests(test.postgres, ledgerMs + 3_600_000, never, systemClock);
    const own = others[7]!;
    await insertDeliveries(test.sql.bind(test), {
      notifications: [own],
      subscriptionIds: [subscriptionId],
      state: 'failed',
    });
    expect((await fetchAll()).ids).toEqual([own]);
  });

  it('is all that was accepted from a time on, also where its id is seconds older than that', async () => {
    const [madeAt, takenMs] = [Date.now() - 600_000, 9000];
    const [before, slow] = [uuidv7({ msecs: madeAt - 60_000 }), uuidv7({ msecs: madeAt })];
    await insert([before, slow]);
    const acceptedAt = madeAt + takenMs;
    await test.sql('UPDATE notification SET accepted_at = to_timestamp($2::float8 / 1000) WHERE id = $1', [
      slow,
      acceptedAt,
    ]);
    expect((await fetchAll(pulling.startAt(acceptedAt))).ids).toEqual([slow]);
  });

  it('is at most some megabytes at once', async () => {
    const ids = [ago(3000), ago(2000), ago(1000)];
    await insert(ids, subscriptionId, JSON.stringify('x'.repeat(2_500_000)));
    const { notifications } = await pulling.look(subscriptionId, start, 100);
    expect(notifications.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect((await fetchAll()).ids).toEqual(ids);
  });

  it('does not show what is to be sent later', async () => {
    const scheduled = { ...newNotification(), subscriptionIds: [subscriptionId], notBefore: Date.now() + 3_600_000 };
    await test.acceptAll([scheduled]);
    const { notifications } = await pulling.look(subscriptionId, start, 100);
    const deliverAfter = new Date(scheduled.notBefore);
    expect(notifications).toMatchObject([{ id: scheduled.id, deliverAfter, body: null }]);
    // There is nothing to read again once it is erased.
    await test.sql('UPDATE notification SET body = NULL WHERE id = $1', [scheduled.id]);
    const erased = await pulling.look(subscriptionId, start, 100);
    expect(erased.notifications).toMatchObject([{ id: scheduled.id, deliverAfter: null, body: null }]);
  });

  it('has its text also where its publisher’s clock is a moment ahead: it comes when that is over', async () => {
    const accept = async (more: object = {}) => {
      const item = { ...newNotification(), subscriptionIds: [subscriptionId], ...more };
      await test.acceptAll([item]);
      return item.id;
    };
    const ahead = [await accept({ notBefore: Date.now() + 900 }), await accept({ notBefore: Date.now() + 900 })];
    const ids = [...ahead, await accept()];
    const given: string[] = [];
    let cursor = start;
    do {
      const page = await pulling.fetch(fetcher(), cursor, { limit: 2, waitMs: 30_000, left: never });
      expect(page.notifications.filter(({ deliverAfter, body }) => deliverAfter || body !== '{}')).toEqual([]);
      given.push(...page.notifications.map(({ id }) => id));
      cursor = page.next;
    } while (given.length < ids.length);
    expect(given.toSorted()).toEqual(ids.toSorted());
    expect((await pulling.look(subscriptionId, cursor, 100)).notifications).toEqual([]);
  });

  it('is waited for, until something comes, the caller leaves, or the time is over', async () => {
    const { next } = await fetchAll();
    const waiting = pulling.fetch(fetcher(), next, { limit: 10, waitMs: 30_000, left: never });
    const gone = new AbortController();
    const left = pulling.fetch(fetcher(), next, { limit: 10, waitMs: 30_000, left: gone.signal });
    const other = pulling.fetch(fetcher(randomUUID()), next, { limit: 10, waitMs: 100, left: never });
    gone.abort();
    expect((await left).notifications).toEqual([]);
    expect((await other).notifications).toEqual([]);
    const item = { ...newNotification(), subscriptionIds: [subscriptionId] };
    await test.acceptAll([item]);
    expect((await waiting).notifications).toMatchObject([{ id: item.id, body: '{}', state: 'queued' }]);
  });

  it('is waited for until the process stops, and then no more', async () => {
    const [own, fetches] = [new Arrivals(test.postgres, test.ledgerClock), new Fetches(test.postgres, test.config)];
    const service = new PullService(test.postgres, own, fetches, test.config);
    const wish = { limit: 10, waitMs: 30_000, left: never };
    const all = Array.from({ length: 4 }, () => service.fetch(fetcher(), start, wish));
    own.onModuleDestroy();
    fetches.onModuleDestroy();
    expect((await Promise.all(all)).map(({ notifications }) => notifications)).toEqual([[], [], [], []]);
    // One that comes too late is to ask another process, from where it was.
    expect(await service.fetch(fetcher(), start, wish)).toMatchObject({ notifications: [], next: start, isMore: true });
  });

  it('is looked for by fewer at once than there are connections, and by one application before the other asks again', async () => {
    const service = new PullService(test.postgres, arrivals, new Fetches(test.postgres, test.config), test.config);
    const wish = () => ({ limit: 10, waitMs: 0, left: new AbortController().signal });
    const looks: { of: string; end: () => void }[] = [];
    vi.spyOn(service, 'look').mockImplementation(async (of, next) => {
      await new Promise<void>((end) => looks.push({ of, end }));
      return { notifications: [], next, isMore: false, isHeldBack: false };
    });
    const busy = Array.from({ length: 40 }, () => randomUUID());
    const answers = busy.map((of) => service.fetch(fetcher(of, 'busy'), start, wish()));
    answers.push(service.fetch(fetcher(subscriptionId, 'other'), start, wish()));
    await eventually(() => looks.length > 0, 'the first look');
    const connections = test.postgres.isEmbedded ? 1 : test.config.settings.DATABASE_POOL_SIZE;
    expect(looks.length).toBeLessThanOrEqual(Math.max(1, connections / 2));
    for (let ended = 0; ended < answers.length; ended++) {
      await eventually(() => looks.length > ended, 'the next look');
      looks[ended]!.end();
    }
    expect(await Promise.all(answers)).toHaveLength(41);
    expect(looks.findIndex(({ of }) => of === subscriptionId)).toBeLessThan(3);
  });

  it('ends deliveries that it says it has, and no other', async () => {
    const states = ['queued', 'waiting', 'held', 'failed', 'unknown', 'delivered', 'cancelled'] as const;
    const ids: string[] = [];
    for (const state of states)
      ids.push(
        ...(await insertDeliveries(test.sql.bind(test), {
          notifications: 1,
          subscriptionIds: [subscriptionId, randomUUID()],
          state,
        })),
      );
    const scheduled = { ...newNotification(), subscriptionIds: [subscriptionId], notBefore: Date.now() + 3_600_000 };
    await test.acceptAll([scheduled]);
    const keys = [...ids, scheduled.id, uuidv7()].map((notificationId) => ({ notificationId, subscriptionId }));
    const ended = await endFetched(test.postgres, keys);
    expect(ended.map(({ notificationId }) => notificationId).toSorted()).toEqual(ids.slice(0, 5).toSorted());
    const rows = await test.sql(
      `SELECT state, last_error, generation, ended_at IS NOT NULL AS has_ended, count(*)::int FROM delivery
       WHERE subscription_id = $1 GROUP BY 1, 2, 3, 4 ORDER BY 1, 3`,
      [subscriptionId],
    );
    expect(rows).toEqual([
      { state: 'waiting', last_error: null, generation: 1, has_ended: false, count: 1 },
      { state: 'delivered', last_error: null, generation: 1, has_ended: false, count: 1 },
      { state: 'delivered', last_error: fetchedBySubscriber, generation: 2, has_ended: true, count: 5 },
      { state: 'cancelled', last_error: null, generation: 1, has_ended: false, count: 1 },
    ]);
    expect(await endFetched(test.postgres, keys)).toEqual([]);
  });

  it('counts those that it has ended also where it fails afterwards: the next time they have ended before', async () => {
    const counts: number[] = [];
    const count = (ended: number) => counts.push(ended);
    const insertQueued = (notifications: number) =>
      insertDeliveries(test.sql.bind(test), { notifications, subscriptionIds: [subscriptionId], state: 'queued' });
    const keys = (await insertQueued(3)).map((notificationId) => ({ notificationId, subscriptionId }));
    const failing = Object.assign(Object.create(test.postgres) as typeof test.postgres, {
      query: (...asked: Parameters<typeof test.postgres.query>) =>
        asked[0].name === 'end-turns' ? Promise.reject(new Error('connection lost')) : test.postgres.query(...asked),
    });
    await expect(endFetched(failing, keys, count)).rejects.toThrow('connection lost');
    expect(await endFetched(test.postgres, keys, count)).toEqual([]);
    expect(counts.reduce((sum, ended) => sum + ended, 0)).toBe(3);
  });

  it('asks only of the days that there are, whatever days are in the ids it says it has', async () => {
    const days = Array.from({ length: 50 }, (_, nr) => Date.now() - nr * 86_400_000);
    const keys = days.map((msecs) => ({ notificationId: uuidv7({ msecs }), subscriptionId }));
    const query = vi.spyOn(test.postgres, 'query');
    try {
      await endFetched(test.postgres, keys);
      const asked = query.mock.calls.flatMap(([{ name, edition }]) =>
        name === 'end-fetched' ? [Number(edition)] : [],
      );
      const there = (await readDays(test.postgres))
        .map(({ day }) => day)
        .filter((day) => days.some((ms) => Math.floor(ms / 86_400_000) === day));
      expect(there.length).toBeGreaterThan(0);
      expect(asked).toEqual(there);
    } finally {
      query.mockRestore();
    }
  });

  it('lets what is in line behind it go, and gives up its own place', async () => {
    const inOrder = { objectKey: randomUUID(), subscriptionIds: new Set([subscriptionId]) };
    const items = Array.from({ length: 3 }, () => ({
      ...newNotification(),
      subscriptionIds: [subscriptionId],
      inOrder,
    }));
    for (const item of items) await test.acceptAll([item]);
    const [first, second, third] = items.map(({ id }) => newDelivery({ notificationId: id, subscriptionId }));
    await endFetched(test.postgres, [second!]);
    expect(await test.state(third!)).toBe('held');
    await endFetched(test.postgres, [first!]);
    expect(await test.state(third!)).toBe('waiting');
    expect(await test.sql('SELECT FROM in_line')).toEqual([]);
  });

  if (stack.name === 'real')
    it('comes although its transaction ended later than that of a later one', async () => {
      const client = new pg.Client({ connectionString: prepared.settings.DATABASE_URL!, application_name: 'heraut' });
      await client.connect();
      const [early, late] = [ago(20), ago(0)];
      await client.query('BEGIN');
      const write = (text: string, values: unknown[]) => client.query(text, values);
      await insertNotifications(write, [early]);
      await insertDeliveries(write, { notifications: [early], subscriptionIds: [subscriptionId], state: 'queued' });
      await insert([late]);
      const { ids, next } = await fetchAll();
      expect(ids).toEqual([late]);
      const limits = publishingLimits(timeoutS * 1000);
      const horizon = () => readHorizon(test.postgres, timeoutS, publishingLimits);
      // However long it takes, nobody passes what it may still commit.
      const { rows } = await client.query<{ ms: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS ms');
      const stuck = lowestIdAt(Math.floor(rows[0]!.ms - limits.turnWithinMs - limits.beginWithinMs - 1000));
      expect(await horizon()).toBe(stuck);
      await client.query('COMMIT');
      await client.end();
      await eventually(async () => (await horizon()) > stuck, 'the horizon to move on');
      const then = await fetchAll(next);
      expect(then.ids).toEqual([early]);
      expect((await fetchAll(then.next)).ids).toEqual([]);
    });

  it('comes from a process with a longer DATABASE_TIMEOUT too, whose ids may be older when they are committed', async () => {
    await test.sql(`INSERT INTO process (id, roles, expires_at, database_timeout)
      VALUES ('other', '{api}', now() + interval '10 s', 60)`);
    try {
      const [early, late] = [ago(30_000), ago(0)];
      await insert([late]);
      const { ids, next } = await fetchAll();
      expect(ids).toEqual([late]);
      await insert([early]);
      expect((await fetchAll(next)).ids).toEqual([early]);
      // It has ended, and Postgres may still carry out what it asked for.
      await test.sql(`UPDATE process SET expires_at = '-infinity', steady_since = now() WHERE id = 'other'`);
      const { next: then } = await fetchAll(next);
      const other = ago(30_000);
      await insert([other]);
      expect((await fetchAll(then)).ids).toEqual([other]);
    } finally {
      await test.sql(`DELETE FROM process WHERE id = 'other'`);
    }
  });

  it('is not held back by a longer DATABASE_TIMEOUT of a process that accepts nothing', async () => {
    await test.sql(`INSERT INTO process (id, roles, expires_at, database_timeout)
      VALUES ('other', '{worker,dispatcher}', now() + interval '10 s', 600)`);
    try {
      const horizon = await readHorizon(test.postgres, timeoutS, publishingLimits);
      expect(horizon > ago(60_000)).toBe(true);
    } finally {
      await test.sql(`DELETE FROM process WHERE id = 'other'`);
    }
  });

  if (stack.name === 'real')
    it('is not said to be more where a look comes to no end, and the next one would begin where it did', async () => {
      const url = prepared.settings.DATABASE_URL!;
      const client = new pg.Client({ connectionString: url, application_name: 'heraut' });
      await client.connect();
      try {
        await client.query('BEGIN'); // nobody passes what it may commit
        const cursor = { after: ago(0), seen: [] };
        const others = Array.from({ length: 3000 }, () => ago(0));
        await insert(others, randomUUID());
        const look = (from: PullCursor) => pulling.look(subscriptionId, from, 100, 1);
        expect(await look(cursor)).toMatchObject({ next: cursor, isMore: false, isHeldBack: true });
        expect(await look(start)).toMatchObject({ notifications: [], isMore: true });
      } finally {
        await client.end();
      }
    });

  if (stack.name === 'real')
    it('goes no further than the beginning of a session whose transactions are not noted', async () => {
      const url = prepared.settings.DATABASE_URL!;
      const other = new pg.Client({ connectionString: url, application_name: 'heraut' });
      await other.connect();
      try {
        await other.query('SET track_activities = off');
        const horizon = () => readHorizon(test.postgres, timeoutS, publishingLimits);
        const stuck = await horizon();
        expect(stuck > lowestId).toBe(true);
        const id = ago(20);
        await insert([id]);
        const { ids, next } = await fetchAll();
        expect(ids).toEqual([id]); // it is given all the same, once
        expect((await fetchAll(next)).ids).toEqual([]);
        expect(await horizon()).toBe(stuck);
        await other.query('SET track_activities = on');
        await eventually(async () => (await horizon()) > stuck, 'the horizon to move on');
      } finally {
        await other.end();
      }
    });

  if (stack.name === 'real')
    it('passes nothing for a role that may not see when transactions of the others began, and logs that', async () => {
      const warned = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
      const role = `seeing_${randomUUID().slice(0, 8)}`;
      const { href } = Object.assign(new URL(prepared.settings.DATABASE_URL!), { username: role });
      const client = new pg.Client({ connectionString: href, application_name: 'heraut' });
      await test.sql(`CREATE ROLE ${role} LOGIN IN ROLE pg_read_all_stats`);
      await test.sql(`GRANT SELECT ON process TO ${role}`);
      try {
        await client.connect();
        const query: Query = async <R>({ text }: { text: string }) => (await client.query(text)).rows as R[];
        const horizon = () => readHorizon({ query }, timeoutS, publishingLimits);
        expect(await horizon()).not.toBe(lowestId);
        expect(warned).not.toHaveBeenCalled();
        await test.sql(`REVOKE pg_read_all_stats FROM ${role}`);
        expect(await horizon()).toBe(lowestId);
        expect(warned).toHaveBeenCalledWith(expect.objectContaining({ event: 'ledger.sessions-hidden' }));
      } finally {
        warned.mockRestore();
        await client.end();
        await test.sql(`DROP OWNED BY ${role}`);
        await test.sql(`DROP ROLE ${role}`);
      }
    });
});
