import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { readSettings } from '../../src/config/settings.js';
import { preferIndexes, Postgres } from '../../src/infra/postgres/postgres.js';
import { claimItems } from '../../src/ledger/claim-sending.service.js';
import { cancelItems, failItems } from '../../src/ledger/end-all-of-subscription.js';
import { endItems } from '../../src/ledger/end-sending.js';
import { freeItems as freeAfterLease } from '../../src/ledger/free-after-lease.js';
import { freeItems as freeOfDeadProcesses } from '../../src/ledger/free-of-dead-processes.js';
import { findQueued, freeItems as freeQueuedBefore } from '../../src/ledger/free-queued-before.js';
import { handOutDueItems } from '../../src/ledger/hand-out-due.js';
import { keepItems } from '../../src/ledger/keep-in-hand.service.js';
import { createPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { putBackItems } from '../../src/ledger/put-back.js';
import { settleResults } from '../../src/ledger/settle.service.js';
import { findStillQueued } from '../../src/ledger/still-queued.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

interface Explained {
  'QUERY PLAN': [{ Plan: PlanNode }];
}

const dayMs = 86_400_000;

/** The statements that look for work, rather than being given deliveries. */
const finders = [handOutDueItems, freeOfDeadProcesses, freeAfterLease, freeQueuedBefore, findQueued, endItems];

describe('a statement about deliveries', () => {
  let database: TestDatabase;
  let client: pg.Client;
  /** The indexes of the partitions, and the index of the table that each is part of. */
  let wholeIndexes: Map<string, string>;

  beforeAll(async () => {
    database = await createDatabase();
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    await postgres.close();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const [yesterday, inAWeek] = [Date.now() - dayMs, Date.now() + 7 * dayMs];
    for (const partition of partitionsBetween(yesterday, inAWeek)) await client.query(createPartition(partition));
    const { rows } = await client.query<{ part: string; whole: string }>(
      `SELECT inhrelid::regclass::text AS part, inhparent::regclass::text AS whole FROM pg_inherits JOIN pg_class ON oid = inhparent
       WHERE relkind = 'I'`,
    );
    wholeIndexes = new Map(rows.map(({ part, whole }) => [part, whole]));
  });

  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  beforeEach(async () => {
    await client.query('TRUNCATE delivery, notification, process');
  });

  /** Deliveries of as many notifications as it takes with ten each. `columns` in SQL. */
  async function fill(state: string, columns: Record<string, string> = {}, count = 20_000): Promise<void> {
    const ids = Array.from({ length: Math.ceil(count / 10) }, () => uuidv7());
    await client.query(
      "INSERT INTO notification (id, channel, publisher, body) SELECT unnest($1::uuid[]), 'channel', 'publisher', '{}'",
      [ids],
    );
    await client.query(
      `INSERT INTO delivery (${['notification_id', 'subscription_id', 'state', ...Object.keys(columns)].join()})
       SELECT ${['notification_id', 'gen_random_uuid()', '$2', ...Object.values(columns)].join()}
       FROM unnest($1::uuid[]) AS n (notification_id), generate_series(1, 10) LIMIT $3`,
      [ids, state, count],
    );
  }

  /** A little of each kind of work. */
  async function addWork(): Promise<void> {
    await client.query("INSERT INTO process (id, roles, expires_at) VALUES ('alive', '{}', now() + interval '1 hour')");
    await fill('waiting', { next_at: 'now()' }, 20);
    await fill('held', { next_at: 'now()' }, 20);
    await fill('queued', { queued_at: 'now()' }, 20);
    await fill('queued', { next_at: 'now()', process: "'alive'" }, 20);
    await fill('queued', { next_at: 'now()', process: "'dead'" }, 20);
    await fill('sending', { next_at: 'now()', process: "'alive'" }, 20);
  }

  const filledWithEnded = () => fill('delivered', { ended_at: 'now()' }).then(addWork);
  const filledWithWaiting = () => fill('waiting', { next_at: "now() + interval '1 day'" }).then(addWork);
  const filledWithQueued = () => fill('queued', { queued_at: 'now()' }).then(addWork);
  const analyze = async () => {
    await client.query('ANALYZE');
  };

  const tables: [string, () => Promise<void>][] = [
    ['is still empty', async () => {}],
    // Tomorrow's partition is, every night where an operator has everything analyzed.
    ['was analyzed while it was empty', analyze],
    ['has just been filled', filledWithWaiting],
    ['was never seen with anything unfinished in it', () => fill('delivered').then(analyze)],
    ['holds much that waits for tomorrow', () => filledWithWaiting().then(analyze)],
    ['holds much that is queued', () => filledWithQueued().then(analyze)],
    ['holds much that has ended', () => filledWithEnded().then(analyze)],
  ];

  /** A connection as `Postgres.query` has it. */
  async function useHotPathSettings(): Promise<void> {
    await client.query(preferIndexes);
    // As after a few executions of a statement: one plan for all values, kept until statistics change.
    await client.query('SET plan_cache_mode = force_generic_plan');
  }

  describe('on a connection of the hot path', () => {
    beforeEach(useHotPathSettings);

    it('is not compiled, not even where there is no index to use', async () => {
      const { rows } = await client.query<{ 'QUERY PLAN': [{ JIT?: unknown }] }>(
        'EXPLAIN (ANALYZE, FORMAT JSON) SELECT version FROM catalogue',
      );
      expect(rows[0]!['QUERY PLAN'][0].JIT).toBeUndefined();
    });

    it.each(tables)(
      'looks up by its primary key each delivery that it is given, when the table %s',
      async (_, prepare) => {
        await prepare();
        for (const { name, text } of [settleResults, findStillQueued, putBackItems, keepItems, claimItems]) {
          const scans = scansOf('delivery', await genericPlan(text));
          expect(scans.length).toBeGreaterThan(0);
          for (const { 'Node Type': type, 'Index Cond': condition } of scans) {
            expect(`${name}: ${type} ${condition}`).toMatch(
              /: Index Scan \(\(notification_id = ANY \(ARRAY\[\w+\.notification_id\]\)\) AND \(subscription_id = \w+\.subscription_id\)\)$/,
            );
          }
        }
      },
    );

    it.each(tables)('finds its work by the index of that work, when the table %s', async (_, prepare) => {
      await prepare();
      const found: Record<string, string[]> = {};
      for (const { name, text } of finders) {
        const plan = await genericPlan(text);
        found[name] = [...new Set(scansOf('delivery', plan).map(wayOf))];
        // Due and lost deliveries are read in the order of the index rather than collected first.
        expect([name, nodesOf(plan).filter((node) => node['Node Type'] === 'Sort')]).toEqual([name, []]);
        const wholeTables = nodesOf(plan).filter((node) => node['Node Type'] === 'Seq Scan');
        // A single row without an index.
        expect([name, wholeTables.filter((node) => node['Relation Name'] !== 'catalogue')]).toEqual([name, []]);
        const unkeyed = scansOf('notification', plan).filter((node) => !node['Index Cond']);
        expect([name, unkeyed]).toEqual([name, []]);
      }
      const byKey = (from: string) =>
        `Index Scan delivery_pkey ((notification_id = ANY (ARRAY[${from}.notification_id])) AND (subscription_id = ${from}.subscription_id))`;
      expect(found).toEqual({
        'hand-out-due': ['Index Scan delivery_due (next_at <= now())', byKey('due')],
        'free-of-dead-processes': ['Index Scan delivery_process (process IS NOT NULL)', byKey('freed')],
        'free-after-lease': ['Index Scan delivery_queued (queued_at IS NULL)', byKey('freed')],
        'free-queued-before': [
          "Index Scan delivery_queued (queued_at < to_timestamp(($1 / '1000'::double precision)))",
          byKey('freed'),
        ],
        'any-queued-for': ["Index Only Scan delivery_queued (queued_at < (now() - ($1 * '00:00:00.001'::interval)))"],
        'end-sending': ['Index Scan delivery_sending', byKey('ended')],
      });
    });
  });

  describe('in the transaction that ends a subscription, on a connection of the other pool', () => {
    beforeEach(async () => {
      await client.query('RESET ALL');
    });

    // Where most rows of a table are of the kind asked for, to read it whole is right, and is not looked at here.
    it.each<[string, (typeof tables)[number][1], string[]]>([
      ['ended', filledWithEnded, ['delivery_sending', 'delivery_queued', 'delivery_due']],
      ['waits for tomorrow', filledWithWaiting, ['delivery_sending', 'delivery_queued']],
      ['is queued', filledWithQueued, ['delivery_sending', 'delivery_due']],
    ])('finds the few of its kind by their index, where nearly everything %s', async (_, prepare, indexes) => {
      await prepare();
      await client.query('ANALYZE');
      // The partitions of other days are empty, and best read whole.
      const { rows: filled } = await client.query<{ name: string }>(
        'SELECT DISTINCT tableoid::regclass AS name FROM delivery',
      );
      const served: string[] = [];
      for (const text of [...cancelItems, ...failItems]) {
        const { rows } = await client.query<Explained>(`EXPLAIN (FORMAT JSON) ${text}`, [randomUUID()]);
        const scans = scansOf('delivery', rows[0]!['QUERY PLAN'][0].Plan);
        const inFilled = scans.filter((node) => filled.some(({ name }) => name === node['Relation Name']));
        served.push([...new Set(inFilled.map(indexOf))].join());
      }
      const [sending, queued, due, failedQueued, failedDue] = served;
      expect({ queued: failedQueued, due: failedDue }).toEqual({ queued, due });
      expect([sending, queued, due].filter((index) => indexes.includes(index!))).toEqual(indexes);
    });
  });

  const indexOf = (node: PlanNode): string => {
    // A bitmap of rows is collected by the index scan below it.
    const scan = node['Node Type'] === 'Bitmap Heap Scan' ? node.Plans![0]! : node;
    const index = scan['Index Name'];
    return index === undefined ? node['Node Type'] : (wholeIndexes.get(index) ?? index);
  };
  const wayOf = (node: PlanNode): string =>
    [node['Node Type'], indexOf(node), ...(node['Index Cond'] ? [node['Index Cond']] : [])].join(' ');

  async function genericPlan(text: string): Promise<PlanNode> {
    await client.query(`PREPARE explained AS ${text}`);
    const count = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
    const { rows } = await client.query<Explained>(
      `EXPLAIN (FORMAT JSON) EXECUTE explained (${Array<string>(count).fill('NULL').join()})`,
    );
    await client.query('DEALLOCATE explained');
    return rows[0]!['QUERY PLAN'][0].Plan;
  }
});

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** Each partition has one of its own. */
const scansOf = (table: string, plan: PlanNode): PlanNode[] =>
  nodesOf(plan).filter((node) => node['Node Type'].endsWith('Scan') && (node['Relation Name'] ?? '').startsWith(table));
