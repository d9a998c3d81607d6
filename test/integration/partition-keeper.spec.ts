import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { createPartition, dayOfPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { TestLedger } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;

describe.each(stacks)('the partitions of the ledger on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open({ ...prepared.settings, RETENTION_DAYS: '30' });
  });
  beforeEach(async () => {
    const names = await partitions();
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
    return (await partitions()).map((name) => dayOfPartition(name)! / dayMs - today).toSorted((a, b) => a - b);
  }

  const threeOf = (...wanted: number[]) => wanted.flatMap((day) => [day, day, day]);

  async function makeDay(daysAgo: number): Promise<number> {
    const at = Date.now() - daysAgo * dayMs;
    for (const partition of partitionsBetween(at, at)) await test.sql(createPartition(partition));
    return at;
  }

  async function addDelivery(at: number, state: string): Promise<void> {
    const id = uuidv7({ msecs: at });
    await test.sql(`INSERT INTO notification (id, channel, publisher, body) VALUES ($1, 'cases', 'tester', '{}')`, [
      id,
    ]);
    await test.sql(
      `INSERT INTO delivery (notification_id, subscription_id, state, next_at) VALUES ($1, gen_random_uuid(), $2, now())`,
      [id, state],
    );
  }

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

  it('are dropped with all their rows when their time is over, and not a day before', async () => {
    const old = await makeDay(31);
    await makeDay(30);
    await addDelivery(old, 'delivered');
    await addDelivery(old, 'failed');
    const before = await days();
    await test.partitions.dropExpired();
    expect(await days()).toEqual(before.filter((day) => day !== -31));
    expect(await test.sql('SELECT FROM delivery')).toEqual([]);
    expect(await test.sql('SELECT FROM notification')).toEqual([]);
  });

  it.each(['queued', 'waiting', 'held', 'sending'])(
    'are kept while a delivery is %s, and dropped later',
    async (state) => {
      await addDelivery(await makeDay(40), state);
      await addDelivery(await makeDay(41), 'delivered');
      await test.partitions.dropExpired();
      expect(await days()).toContain(-40);
      expect(await days()).not.toContain(-41);
      await test.sql(`UPDATE delivery SET state = 'delivered', next_at = NULL`);
      await test.partitions.dropExpired();
      expect(await days()).not.toContain(-40);
    },
  );
});
