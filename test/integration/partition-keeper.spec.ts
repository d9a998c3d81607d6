import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { DeliveryKey, DeliveryState } from '../../src/ledger/delivery.js';
import { dropExpired, type DropWatcher } from '../../src/ledger/drop-expired.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { createPartition, midnightOfPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { eventually } from '../support/eventually.js';
import { delivered, TestLedger } from '../support/ledger.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;

describe.each(stacks)('the partitions of the ledger on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
  });
  beforeEach(async () => {
    events = [];
    const rows = await test.sql<{ name: string }>(`SELECT relname AS name FROM pg_class WHERE relkind = 'r'`);
    const names = rows.map(({ name }) => name).filter((name) => midnightOfPartition(name) !== undefined);
    if (names.length > 0) await test.sql(`DROP TABLE ${names.join(', ')}`);
    await test.partitions.makeAhead();
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  async function partitions(): Promise<string[]> {
    const rows = await test.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid
       WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)`,
    );
    return rows.map(({ name }) => name);
  }

  /** Counted from today, once for each of the three tables. */
  async function days(): Promise<number[]> {
    const today = Math.floor(Date.now() / dayMs);
    return (await partitions()).map((name) => midnightOfPartition(name)! / dayMs - today).toSorted((a, b) => a - b);
  }

  const threeOf = (...wanted: number[]) => wanted.flatMap((day) => [day, day, day]);

  async function makeDay(daysAgo: number): Promise<number> {
    const at = Date.now() - daysAgo * dayMs;
    for (const partition of partitionsBetween(at, at)) await test.sql(createPartition(partition));
    return at;
  }

  /** As a process leaves it that dies, or gives up behind a backup. Embedded there is no half of the way. */
  async function halfDetach(at: number): Promise<void> {
    const [, delivery, attempt] = partitionsBetween(at, at).map(({ name }) => name);
    await test.sql(`ALTER TABLE attempt DETACH PARTITION ${attempt}`);
    if (test.postgres.isEmbedded) await test.sql(`ALTER TABLE delivery DETACH PARTITION ${delivery}`);
    else await test.sql('UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = $1::regclass', [delivery]);
  }

  const running = new AbortController().signal;
  let events: string[] = [];
  const note = ({ event }: { event: string }) => void events.push(event);
  const logger = { log: note, error: note } as unknown as Logger;
  const drop = (stopping = running) => dropExpired(test.postgres, 30, logger, stopping);

  const addDelivery = (at: number, state: DeliveryState) => insertDelivery(test, at, state);

  it('are there from yesterday to a week ahead, however often and by however many they are made', async () => {
    const week = threeOf(-1, 0, 1, 2, 3, 4, 5, 6, 7);
    expect(await days()).toEqual(week);
    await Promise.all([1, 2, 3, 4].map(() => test.partitions.makeAhead()));
    expect(await days()).toEqual(week);
    await test.sql(
      `DROP TABLE ${partitionsBetween(Date.now(), Date.now())
        .map(({ name }) => name)
        .join(', ')}`,
    );
    await Promise.all([1, 2, 3, 4].map(() => test.partitions.makeAhead()));
    expect(await days()).toEqual(week);
  });

  it('are vacuumed and analyzed where enough has changed, unless the server does it by itself', async () => {
    const [today] = partitionsBetween(Date.now(), Date.now()).filter(({ table }) => table === 'delivery');
    const counted = async () => {
      const [row] = await test.sql<{ changed: number; counts: number[] }>(
        `SELECT (n_tup_ins + n_tup_upd)::int AS changed, ARRAY[vacuum_count, analyze_count]::int[] AS counts
         FROM pg_stat_user_tables WHERE relname = $1`,
        [today!.name],
      );
      return row!;
    };
    const subscriptionIds = [randomUUID()];
    await insertDeliveries((text, values) => test.sql(text, values), {
      notifications: 1500,
      subscriptionIds,
      state: 'queued',
    });
    await test.sql(`UPDATE delivery SET state = 'delivered' WHERE subscription_id = ANY ($1)`, [subscriptionIds]);
    await eventually(async () => (await counted()).changed === 3000);
    const once = test.postgres.isEmbedded ? [1, 1] : [0, 0];
    for (let call = 0; call < 2; call++) {
      await test.partitions.vacuumEmbedded();
      expect((await counted()).counts).toEqual(once);
    }
  });

  it('leave no dead rows in the catalogues of Postgres, unless the server sees to that by itself', async () => {
    const columns = Array.from({ length: 1500 }, (_, nr) => `c${nr} int`);
    const vacuums = async () => {
      const [row] = await test.sql<{ count: number; dead: number }>(
        `SELECT vacuum_count::int AS count, n_dead_tup::int AS dead FROM pg_stat_sys_tables
         WHERE relid = 'pg_attribute'::regclass`,
      );
      return row!;
    };
    const before = await vacuums();
    await test.sql(`CREATE TABLE former (${columns.join(', ')})`);
    await test.sql('DROP TABLE former');
    if (test.postgres.isEmbedded) await eventually(async () => (await vacuums()).dead >= columns.length);
    await test.partitions.vacuumEmbedded();
    expect((await vacuums()).count).toBe(test.postgres.isEmbedded ? before.count + 1 : before.count);
  });

  it('are analyzed without those statistics themselves, of which Postgres makes none', async () => {
    const columns = Array.from({ length: 1500 }, (_, nr) => `c${nr} int`);
    await test.sql(`CREATE TABLE wide (${columns.join(', ')})`);
    await test.sql('INSERT INTO wide DEFAULT VALUES');
    await test.sql('ANALYZE wide');
    const counted = async () => {
      const [row] = await test.sql<{ rows: number }>(
        `SELECT n_mod_since_analyze::int AS rows FROM pg_stat_sys_tables WHERE relid = 'pg_statistic'::regclass`,
      );
      return row!.rows >= columns.length;
    };
    await eventually(counted, 'its columns to be counted');
    const query = vi.spyOn(test.postgres.upkeep, 'query');
    try {
      await test.partitions.vacuumEmbedded();
      expect(query.mock.calls.filter(([text]) => text === 'ANALYZE pg_statistic')).toEqual([]);
    } finally {
      query.mockRestore();
      await test.sql('DROP TABLE wide');
    }
  });

  it('are dropped with all their rows when their time is over, and not a day before', async () => {
    const old = await makeDay(31);
    await makeDay(30);
    await addDelivery(old, 'delivered');
    await addDelivery(old, 'failed');
    const before = await days();
    await drop();
    expect(await days()).toEqual(before.filter((day) => day !== -31));
    expect(await test.sql('SELECT FROM delivery')).toEqual([]);
    expect(await test.sql('SELECT FROM notification')).toEqual([]);
  });

  it.each(['queued', 'waiting', 'held', 'sending'] as const)(
    'are kept while a delivery is %s, and dropped later',
    async (state) => {
      await addDelivery(await makeDay(40), state);
      await addDelivery(await makeDay(41), 'delivered');
      await drop();
      expect(await days()).toContain(-40);
      expect(await days()).not.toContain(-41);
      await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
      await drop();
      expect(await days()).not.toContain(-40);
    },
  );

  it.each([
    ['its time has come', "not_before = now() - interval '1 s'"],
    ['its text is gone, so that nothing can take its place', 'body = NULL'],
  ])(
    'are kept while a notification of theirs is scheduled for later, also without a delivery that is left to be sent, until %s',
    async (_, change) => {
      const { notificationId } = await addDelivery(await makeDay(40), 'cancelled');
      const set = (what: string) => test.sql(`UPDATE notification SET ${what} WHERE id = $1`, [notificationId]);
      await set("not_before = now() + interval '1 day', body = '{}'");
      await drop();
      expect(await days()).toContain(-40);
      await set(change);
      await drop();
      expect(await days()).not.toContain(-40);
    },
  );

  it.each(['failed', 'expired', 'unknown'] as const)(
    'are kept for a week after a delivery of theirs became %s, however late that was',
    async (state) => {
      await addDelivery(await makeDay(40), state);
      await test.sql(`UPDATE delivery SET ended_at = now() - interval '6 days'`);
      await drop();
      expect(await days()).toContain(-40);
      await test.sql(`UPDATE delivery SET ended_at = now() - interval '8 days'`);
      await drop();
      expect(await days()).not.toContain(-40);
    },
  );

  it('are kept no longer for a dead letter than the retention itself', async () => {
    await addDelivery(await makeDay(40), 'failed');
    await test.sql(`UPDATE delivery SET ended_at = now() - interval '2 days'`);
    await dropExpired(test.postgres, 1, logger, running);
    expect(await days()).not.toContain(-40);
  });

  it('are dropped to the end when a process died in the middle', async () => {
    const [first, second, third] = [await makeDay(41), await makeDay(42), await makeDay(43)].map(
      (at) => partitionsBetween(at, at)[1]!.name,
    );
    await test.sql(`ALTER TABLE delivery DETACH PARTITION ${first}`);
    // Detaching that was interrupted leaves this mark.
    if (!test.postgres.isEmbedded)
      await test.sql('UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = $1::regclass', [second]);
    await test.sql(`ALTER TABLE delivery DETACH PARTITION ${third}; DROP TABLE ${third}`);
    const before = await days();
    await drop();
    expect(await days()).toEqual(before.filter((day) => day > -41));
    expect(events).toEqual(['ledger.day-dropped', 'ledger.day-dropped', 'ledger.day-dropped']);
  });

  it('go back into their tables when a delivery was retried after they were detached', async () => {
    const at = await makeDay(40);
    await addDelivery(at, 'waiting');
    const before = await days();
    for (const { table, name } of partitionsBetween(at, at))
      await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
    await drop();
    expect(await days()).toEqual(before);
    expect(await test.sql('SELECT FROM delivery')).toHaveLength(1);
    expect(events).toEqual(['ledger.day-kept-unfinished']);
  });

  it('go back into their tables from wherever they are when a delivery is under way', async () => {
    const at = await makeDay(40);
    await addDelivery(at, 'waiting');
    const before = await days();
    await halfDetach(at);
    await drop();
    expect(await days()).toEqual(before);
    expect(await test.sql('SELECT FROM delivery')).toHaveLength(1);
    expect(events).toEqual(['ledger.day-kept-unfinished']);
  });

  it('go back into their tables from wherever they are when their retention was made longer', async () => {
    const [begun, detached] = [await makeDay(40), await makeDay(41)];
    await addDelivery(begun, 'delivered');
    const before = await days();
    await halfDetach(begun);
    for (const { table, name } of partitionsBetween(detached, detached))
      await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
    await dropExpired(test.postgres, 60, logger, running);
    expect(await days()).toEqual(before);
    expect(await test.sql('SELECT FROM delivery')).toHaveLength(1);
    expect(events).toEqual(['ledger.day-put-back', 'ledger.day-put-back']);
  });

  it.each([
    { retention: 30, events: ['ledger.day-dropped', 'ledger.day-dropped'], left: [] },
    { retention: 41, events: ['ledger.day-put-back', 'ledger.day-dropped'], left: [-40, -40, -40] },
  ])(
    'are dropped after $retention days also while a later one is half detached, which leaves or goes back first',
    async ({ retention, events: expected, left }) => {
      await makeDay(45);
      await halfDetach(await makeDay(40));
      await dropExpired(test.postgres, retention, logger, running);
      expect((await days()).filter((day) => day < -1)).toEqual(left);
      expect(events).toEqual(expected);
    },
  );

  it('are dropped also while one cannot be put back, which is told', async () => {
    const [due, stuck] = [await makeDay(45), await makeDay(40)];
    const [, delivery] = partitionsBetween(stuck, stuck).map(({ name }) => name);
    await test.sql(`ALTER TABLE delivery DETACH PARTITION ${delivery}; ALTER TABLE ${delivery} ADD COLUMN former int`);
    await addDelivery(due, 'delivered');
    await expect(dropExpired(test.postgres, 41, logger, running)).rejects.toThrow('former');
    expect((await days()).filter((day) => day < -1)).toEqual([-40, -40]);
    expect(events).toEqual(['ledger.day-failed', 'ledger.day-dropped']);
  });

  it('go back into their tables when a delivery was sent again, and has ended, since they were copied', async () => {
    const key = await addDelivery(await makeDay(40), 'failed');
    const before = await days();
    const copies: string[] = [];
    const watcher: DropWatcher = {
      copy: async (connection, { partitions: [, deliveries] }) => {
        copies.push(
          ...((await connection.query(`SELECT state FROM ${deliveries!.name}`)) as { state: string }[]).map(
            ({ state }) => state,
          ),
        );
        if (copies.length > 1) return true;
        expect(await retryNow(test.postgres, key)).toBe('retried');
        const { deliveries: handed } = await handOutDue(test.postgres, 10, null);
        await test.settlements.settle(delivered(handed[0]!));
        return true;
      },
      asDropped: () => Promise.resolve(),
      afterwards: () => Promise.resolve(),
    };
    await dropExpired(test.postgres, 30, logger, running, watcher);
    expect(await days()).toEqual(before);
    await dropExpired(test.postgres, 30, logger, running, watcher);
    expect(await days()).not.toContain(-40);
    expect(copies).toEqual(['failed', 'delivered']);
    expect(events).toEqual(['ledger.day-kept-unfinished', 'ledger.day-dropped']);
  });

  it('go back into their tables when they cannot be copied once more', async () => {
    const at = await makeDay(40);
    await addDelivery(at, 'delivered');
    const before = await days();
    for (const { table, name } of partitionsBetween(at, at))
      await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
    await dropExpired(test.postgres, 30, logger, running, {
      copy: () => Promise.resolve(false),
      asDropped: () => Promise.resolve(),
      afterwards: () => Promise.resolve(),
    });
    expect(await days()).toEqual(before);
    expect(events).toEqual(['ledger.day-not-exported']);
  });

  it('are dropped one day and no more when the process is told to stop', async () => {
    for (const ago of [40, 41]) await makeDay(ago);
    await drop(AbortSignal.abort());
    expect(await days()).toContain(-40);
    expect(await days()).not.toContain(-41);
  });
});

describe('behind a backup that reads everything', () => {
  let prepared: Awaited<ReturnType<typeof real.prepare>>;
  let test: TestLedger;
  let watcher: TestLedger;
  let backup: Awaited<ReturnType<typeof connect>>;

  beforeAll(async () => {
    prepared = await real.prepare();
    test = await TestLedger.open(prepared.settings);
    watcher = await TestLedger.open(prepared.settings);
    backup = await connect(prepared.settings.DATABASE_URL!);
  });
  afterEach(() => backup.query('ROLLBACK')); // of a test that failed
  afterAll(async () => {
    await backup.end(); // first: what waits for it would keep the others open
    await watcher.close();
    await test.close();
    await prepared.release();
  });

  it('days are made and dropped without anybody waiting, and dropped to the end when it is over', async () => {
    const old = Date.now() - 40 * dayMs;
    for (const partition of partitionsBetween(old, old)) await test.sql(createPartition(partition));
    const ended = await insertDelivery(test, old, 'failed');
    let copy: DeliveryState[] = [];
    const copying: DropWatcher = {
      copy: async (connection, { partitions }) => {
        const rows = (await connection.query(`SELECT state FROM ${partitions[1]!.name}`)) as { state: DeliveryState }[];
        copy = rows.map(({ state }) => state);
        return true;
      },
      asDropped: () => Promise.resolve(),
      afterwards: () => Promise.resolve(),
    };
    const ahead = partitionsBetween(Date.now() + 7 * dayMs, Date.now() + 7 * dayMs);
    await test.sql(`DROP TABLE ${ahead.map(({ name }) => name).join(', ')}`);
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    for (const table of ['notification', 'delivery', 'attempt']) await backup.query(`SELECT count(*) FROM ${table}`);

    const events: string[] = [];
    const logger = { log: ({ event }: { event: string }) => void events.push(event) } as unknown as Logger;
    const drop = () => dropExpired(test.postgres, 30, logger, new AbortController().signal, copying);
    let isOver = false;
    const dropping = drop().finally(() => (isOver = true));
    // Everything that delivers and accepts goes on meanwhile, and is never seen waiting for a lock.
    let rounds = 0;
    while (!isOver) {
      const [delivery] = await test.accept();
      await test.settlements.settle(delivered(delivery!));
      await handOutDue(test.postgres, 10, null);
      const waiting = await watcher.sql(
        `SELECT query FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE NOT granted AND datname = current_database() AND query NOT LIKE 'ALTER TABLE % DETACH PARTITION %'`,
      );
      expect(waiting).toEqual([]);
      rounds++;
    }
    await dropping;
    expect(rounds).toBeGreaterThan(1);
    expect(events).toEqual(['ledger.day-in-use']);
    expect(copy).toEqual(['failed']);
    // The old day has begun to leave: an operator's retry of its delivery comes with its text all the same.
    expect(await retryNow(test.postgres, ended)).toBe('retried');
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([{ ...ended, body: Buffer.from('{}') }]);
    await test.settlements.settle(delivered(deliveries[0]!));
    await test.partitions.makeAhead();
    expect(await test.sql(`SELECT to_regclass('${ahead[0]!.name}') IS NOT NULL AS yes`)).toEqual([{ yes: true }]);

    await backup.query('COMMIT');
    await drop();
    expect(events).toEqual(['ledger.day-in-use', 'ledger.day-dropped']);
    expect(copy).toEqual(['delivered']);
    for (const { name } of partitionsBetween(old, old))
      expect(await test.sql('SELECT to_regclass($1) IS NULL AS yes', [name])).toEqual([{ yes: true }]);
  });

  /** Drops what is past 30 days, with a copy that counts. */
  function countingCopies() {
    const told = { events: [] as string[], copies: 0 };
    const logger = { log: ({ event }: { event: string }) => void told.events.push(event) } as unknown as Logger;
    const copying: DropWatcher = {
      copy: () => Promise.resolve(++told.copies > 0),
      asDropped: () => Promise.resolve(),
      afterwards: () => Promise.resolve(),
    };
    return { told, drop: () => dropExpired(test.postgres, 30, logger, new AbortController().signal, copying) };
  }

  it('a day that has begun to leave is not copied in each round, and keeps nobody else from reading it', async () => {
    const old = Date.now() - 42 * dayMs;
    for (const partition of partitionsBetween(old, old)) await test.sql(createPartition(partition));
    await insertDelivery(test, old, 'delivered');
    const { told, drop } = countingCopies();
    await backup.query('BEGIN');
    await backup.query('SELECT count(*) FROM attempt');
    await drop();
    let isOver = false;
    const dropping = drop().finally(() => (isOver = true));
    // As each worker of a dump asks for a table: it gives all of the dump up where that is refused.
    const ask = `LOCK TABLE ${partitionsBetween(old, old).at(-1)!.name} IN ACCESS SHARE MODE NOWAIT`;
    while (!isOver) await watcher.postgres.dataSource.transaction((manager) => manager.query(ask));
    await dropping;
    expect(told).toEqual({ events: ['ledger.day-in-use', 'ledger.day-in-use'], copies: 1 });
    await backup.query('COMMIT');
    await drop();
    expect(told).toEqual({ events: ['ledger.day-in-use', 'ledger.day-in-use', 'ledger.day-dropped'], copies: 2 });
  });

  it('a day that has begun to leave is not copied in each round while an older transaction reads another day', async () => {
    const [old, other] = [Date.now() - 43 * dayMs, Date.now() - 9 * dayMs];
    for (const partition of [old, other].flatMap((at) => partitionsBetween(at, at)))
      await test.sql(createPartition(partition));
    await insertDelivery(test, old, 'delivered');
    const { told, drop } = countingCopies();
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    const { from, to } = partitionsBetween(other, other).at(-1)!;
    await backup.query(`SELECT count(*) FROM attempt WHERE notification_id >= '${from}' AND notification_id < '${to}'`);
    for (let round = 0; round < 2; round++) await drop();
    expect(told).toEqual({ events: ['ledger.day-in-use', 'ledger.day-in-use'], copies: 1 });
    await backup.query('COMMIT');
    await drop();
    expect(told).toEqual({ events: ['ledger.day-in-use', 'ledger.day-in-use', 'ledger.day-dropped'], copies: 2 });
  });

  it('a day that has begun to leave leaves no further when a delivery of it is under way', async () => {
    const old = Date.now() - 41 * dayMs;
    const [notification, delivery, attempt] = partitionsBetween(old, old);
    for (const partition of [notification, delivery, attempt]) await test.sql(createPartition(partition!));
    const waiting = await insertDelivery(test, old, 'waiting');
    await test.sql(`ALTER TABLE attempt DETACH PARTITION ${attempt!.name}`);
    await backup.query('BEGIN');
    await backup.query(`SELECT count(*) FROM ${notification!.name}`);
    const events: string[] = [];
    const logger = { log: ({ event }: { event: string }) => void events.push(event) } as unknown as Logger;
    const drop = () => dropExpired(test.postgres, 30, logger, new AbortController().signal);
    await drop();
    expect(events).toEqual(['ledger.day-kept-unfinished']);
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([waiting]);
    await backup.query('COMMIT');
    await test.settlements.settle(delivered(deliveries[0]!));
    await drop();
    expect(events).toEqual(['ledger.day-kept-unfinished', 'ledger.day-dropped']);
  });
});

async function insertDelivery(test: TestLedger, at: number, state: DeliveryState): Promise<DeliveryKey> {
  const key = { notificationId: uuidv7({ msecs: at }), subscriptionId: randomUUID() };
  const sql = (text: string, values: unknown[]) => test.sql(text, values);
  await insertNotifications(sql, [key.notificationId]);
  const notifications = [key.notificationId];
  const subscriptionIds = [key.subscriptionId];
  await insertDeliveries(sql, { notifications, subscriptionIds, state, columns: { next_at: 'now()' } });
  return key;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
