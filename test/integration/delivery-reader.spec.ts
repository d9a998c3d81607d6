import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { DeliveryReader } from '../../src/deliveries/delivery-reader.service.js';
import type { DeliveryKey, DeliveryState } from '../../src/ledger/delivery.js';
import { byDelivery, rangeEnd } from '../../src/deliveries/search-statements.js';
import { LedgerSearch, type SearchBounds } from '../../src/deliveries/search.service.js';
import type { Criteria } from '../../src/deliveries/criteria.js';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { attachPartition, createPartition, lowestIdAt, partitionsBetween } from '../../src/ledger/partitions.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';

const dayMs = 86_400_000;
const today = Date.UTC(2026, 10, 20);

/** The n-th notification of a day, counted back from today. */
function notificationId(daysAgo: number, n: number): string {
  const id = lowestIdAt(today - daysAgo * dayMs + n);
  return `${id.slice(0, 14)}7${id.slice(15, 19)}8${id.slice(20)}`;
}

describe.each(stacks)('the list of deliveries on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let reader: DeliveryReader;
  const [first, second] = [randomUUID(), randomUUID()].sort() as [string, string];

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), []);
    await postgres.migrate();
    for (const partition of partitionsBetween(today - 2 * dayMs, today)) {
      await postgres.dataSource.query(createPartition(partition));
    }
    reader = new DeliveryReader(postgres, new LedgerSearch(postgres));
    // Two days of notifications for two subscriptions; the second of each day fails for the first subscription.
    for (const daysAgo of [0, 1]) {
      for (let n = 0; n < 10; n++) {
        await add(notificationId(daysAgo, n), first, n === 1 ? 'failed' : 'delivered');
        const others: Record<number, DeliveryState> = { 2: 'waiting', 4: 'queued' };
        await add(notificationId(daysAgo, n), second, others[n] ?? 'delivered');
      }
    }
  });

  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  async function add(id: string, subscriptionId: string, state: DeliveryState): Promise<void> {
    const sql = (text: string, values: unknown[]) => postgres.dataSource.query(text, values);
    await insertNotifications(sql, [id]);
    const next_at = state === 'waiting' ? "timestamptz '2026-11-21 08:00Z'" : 'NULL';
    const columns = { next_at, attempts: '1', failures: '1', last_status: '503' };
    await insertDeliveries(sql, { notifications: [id], subscriptionIds: [subscriptionId], state, columns });
  }

  const bounds = (rows: number): SearchBounds => ({ rows, blocks: 2, digests: 100, owned: 1, bytes: 1_000_000 });

  async function pages(criteria: Criteria, limit: number, rangeRows = 50_000): Promise<DeliveryKey[][]> {
    const found: DeliveryKey[][] = [];
    let after: DeliveryKey | undefined;
    do {
      const page = await reader.list(criteria, after, limit, bounds(rangeRows));
      found.push(page.deliveries);
      after = page.next;
    } while (after);
    return found;
  }

  it('runs from the newest notification to the oldest, page after page, each delivery once', async () => {
    const found = await pages({}, 7);
    expect(found.map((deliveries) => deliveries.length)).toEqual([7, 7, 7, 7, 7, 5]);
    const keys = found.flat().map((key) => `${key.notificationId} ${key.subscriptionId}`);
    expect(keys).toEqual(keys.toSorted().reverse());
    expect(new Set(keys).size).toBe(40);
  });

  it('ends with the last full page', async () => {
    expect((await pages({}, 20)).map((deliveries) => deliveries.length)).toEqual([20, 20]);
  });

  it.each<[string, () => Criteria, number]>([
    ['a notification', () => ({ notificationId: notificationId(1, 3) }), 2],
    ['a notification and a subscription', () => ({ notificationId: notificationId(1, 3), subscriptionId: second }), 1],
    ['a subscription', () => ({ subscriptionId: second }), 20],
    ['a state without an index', () => ({ state: 'delivered' }), 34],
    ['a subscription and such a state', () => ({ subscriptionId: first, state: 'delivered' }), 18],
    ['dead letters', () => ({ state: 'failed' }), 2],
    ['dead letters of a subscription', () => ({ state: 'failed', subscriptionId: first }), 2],
    ['dead letters of a subscription that has none', () => ({ state: 'failed', subscriptionId: second }), 0],
    ['what waits', () => ({ state: 'waiting' }), 2],
    ['what waits of a notification', () => ({ state: 'waiting', notificationId: notificationId(0, 2) }), 1],
    ['an unknown notification', () => ({ notificationId: randomUUID() }), 0],
  ])('finds %s', async (_what, filter, count) => {
    expect((await pages(filter(), 5)).flat()).toHaveLength(count);
    expect((await pages(filter(), 500)).flat()).toHaveLength(count);
  });

  it('searches a limited range at a time where no index serves the filter, and misses none between two ranges', async () => {
    const found = await pages({ subscriptionId: second, state: 'delivered' }, 3, 7);
    expect(found.flat()).toHaveLength(16);
    expect(new Set(found.flat().map((key) => key.notificationId)).size).toBe(16);
    expect(found.length).toBeGreaterThan(40 / 7);
    const none = await pages({ subscriptionId: first, state: 'cancelled' }, 3, 7);
    expect(none.length).toBeGreaterThan(20 / 7);
    expect(none.flat()).toEqual([]);
  });

  it.each(['waiting', 'queued'] as const)(
    'lists what is %s from the newest to the oldest, whether it is little or much',
    async (state) => {
      const expected = await postgres.dataSource.query<{ id: string }[]>(
        'SELECT notification_id AS id FROM delivery WHERE state = $1 ORDER BY 1 DESC',
        [state],
      );
      for (const rangeRows of [10_000, 7]) {
        const found = await pages({ state }, 1, rangeRows);
        expect(found.flat().map(({ notificationId: id }) => id)).toEqual(expected.map(({ id }) => id));
      }
      expect(expected).toHaveLength(2);
    },
  );

  it('shows when the next attempt is due only while the delivery waits', async () => {
    const waiting = await reader.find({ notificationId: notificationId(0, 2), subscriptionId: second });
    expect(waiting).toMatchObject({
      state: 'waiting',
      channel: 'cases',
      attempts: 1,
      failures: 1,
      lastStatus: 503,
      nextAttemptAt: new Date('2026-11-21T08:00:00Z'),
      endedAt: null,
    });
    const ended = await reader.find({ notificationId: notificationId(0, 2), subscriptionId: first });
    expect(ended).toMatchObject({ state: 'delivered', nextAttemptAt: null });
    expect(await reader.find({ notificationId: notificationId(0, 2), subscriptionId: randomUUID() })).toBeUndefined();
  });

  it('shows the attempts of a delivery also while their day is on its way out, which they leave first', async () => {
    const key = { notificationId: notificationId(1, 3), subscriptionId: first };
    await postgres.dataSource.query(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status)
       VALUES ($1, $2, 1, 1, '2026-11-19 10:00Z', 7, 204)`,
      [key.notificationId, key.subscriptionId],
    );
    const attempts = partitionsBetween(today - dayMs, today - dayMs)[2]!;
    await postgres.dataSource.query(`ALTER TABLE attempt DETACH PARTITION ${attempts.name}`);
    try {
      expect(await reader.find(key)).toMatchObject({ state: 'delivered' });
      expect(await reader.attemptsOf(key)).toMatchObject([{ number: 1, status: 204 }]);
    } finally {
      await postgres.dataSource.query(attachPartition(attempts));
    }
  });

  it('shows the attempts of a delivery in their order', async () => {
    const key = { notificationId: notificationId(0, 1), subscriptionId: first };
    const details = { address: '192.0.2.1:80', headers: { server: 'nginx' }, body: 'no' };
    await postgres.dataSource.query(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, connect_ms,
         first_byte_ms, status, error, details)
       VALUES ($1, $2, 3, 2, '2026-11-20 10:00:25Z', 12, NULL, NULL, NULL, 'timeout', NULL),
         ($1, $2, 1, 1, '2026-11-20 10:00Z', 7, 2, 6, 503, NULL, $3)`,
      [key.notificationId, key.subscriptionId, JSON.stringify(details)],
    );
    expect(await reader.attemptsOf(key)).toEqual([
      {
        number: 1,
        generation: 1,
        startedAt: new Date('2026-11-20T10:00:00Z'),
        durationMs: 7,
        connectMs: 2,
        firstByteMs: 6,
        status: 503,
        error: null,
        details,
      },
      {
        number: 2,
        generation: 3,
        startedAt: new Date('2026-11-20T10:00:25Z'),
        durationMs: 12,
        connectMs: null,
        firstByteMs: null,
        status: null,
        error: 'timeout',
        details: null,
      },
    ]);
  });

  describe('with many rows', () => {
    const plan = async ([statement, values]: [Statement, Values]): Promise<string> => {
      const text = `EXPLAIN ${statement.text}`;
      const rows = await postgres.dataSource.query<{ 'QUERY PLAN': string }[]>(text, valuesOf(statement, values));
      return rows.map((row) => row['QUERY PLAN']).join('\n');
    };

    beforeAll(async () => {
      // A third day, older than the others, so that nothing above changes.
      await postgres.dataSource.query(
        `INSERT INTO delivery (notification_id, subscription_id, state)
         SELECT overlay('${notificationId(2, 0)}' PLACING lpad(to_hex(n), 12, '0') FROM 25)::uuid, gen_random_uuid(),
           (CASE WHEN n % 500 = 0 THEN 'failed' ELSE 'delivered' END)::delivery_state
         FROM generate_series(1, 20000) AS n`,
      );
      await postgres.dataSource.query('ANALYZE delivery');
    });

    afterAll(async () => {
      await postgres.dataSource.query(`DELETE FROM delivery WHERE notification_id < $1`, [lowestIdAt(today - dayMs)]);
    });

    it('finds dead letters by an index of their own', async () => {
      expect(await plan(byDelivery('delivery', { state: 'failed' }, {}, 50))).toMatch(
        /Index.* Scan.*_state_notification_id_subscription_id_idx/,
      );
      expect(await plan(byDelivery('delivery', { state: 'failed', subscriptionId: first }, {}, 50))).toMatch(
        /Index.* Scan.*_subscription_id_state_notification_id_idx/,
      );
    });

    it('skips the days that cannot contain the page', async () => {
      const after = { notificationId: notificationId(1, 0), subscriptionId: first };
      expect(await plan(byDelivery('delivery', {}, { after }, 50))).not.toContain('delivery_20261120');
      expect(await plan(byDelivery('delivery', {}, { end: after }, 50))).not.toContain('delivery_20261118');
    });

    it('finds the end of a range without sorting', async () => {
      expect(await plan(rangeEnd({}, {}, {}, { rows: 10_000, bytes: undefined }))).not.toContain('Sort');
    });
  });
});
