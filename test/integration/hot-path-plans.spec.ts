import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { asOnHotPath } from '../../src/infra/postgres/session-settings.js';
import { claimItems, findStillClaimed } from '../../src/ledger/claim-sending.service.js';
import { dropItems, forgetDropItem, newestHeldItem } from '../../src/ledger/drop-held.js';
import { endOfSubscriptionItems } from '../../src/ledger/end-of-subscription.js';
import { endSendingItems, findUndecided } from '../../src/ledger/end-sending.js';
import { freeAfterLeaseItems } from '../../src/ledger/free-after-lease.js';
import { freeOfDeadProcessesItems } from '../../src/ledger/free-of-dead-processes.js';
import { findQueued, freeQueuedBeforeItems } from '../../src/ledger/free-queued-before.js';
import { findDue, handOutDueItems } from '../../src/ledger/hand-out-due.js';
import { keepItems, leaveItems } from '../../src/ledger/keep-in-hand.service.js';
import { findNotInLine, lineUpItems } from '../../src/ledger/line-up.js';
import { createPartition, dayOfId, partitionsBetween } from '../../src/ledger/partitions.js';
import { endTurnItems, findLeftItems, findNextItems, passTurnItems } from '../../src/ledger/pass-turn.js';
import { putBackItems } from '../../src/ledger/put-back.js';
import { readHeldItems } from '../../src/ledger/read-held.js';
import { releaseItems } from '../../src/ledger/release.js';
import { settleResults } from '../../src/ledger/settle.service.js';
import { findStillQueued } from '../../src/ledger/still-queued.js';
import { anyHeldItems, anyReleasedItems, readNotPausedItems } from '../../src/ledger/unsettled-held.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';

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
/** In a plan, the beginning of a look since the last one. */
const since = (column: string, nr = 1) => `(${column} >= to_timestamp(($${nr} / '1000'::double precision)))`;

/** The statements that look for work, rather than being given deliveries. */
const finders = [
  handOutDueItems,
  findDue,
  findNotInLine,
  freeOfDeadProcessesItems,
  freeAfterLeaseItems,
  freeQueuedBeforeItems,
  findQueued,
  endSendingItems,
  findUndecided,
  findLeftItems,
];
/** The statements that are given deliveries, each for the day of those. */
const givens = [settleResults, findStillQueued, putBackItems, keepItems, leaveItems, claimItems, findStillClaimed];

describe('a statement about deliveries', () => {
  let database: TestDatabase;
  let client: pg.Client;
  /** The indexes of the partitions, and the index of the table that each is part of. */
  let wholeIndexes: Map<string, string>;

  beforeAll(async () => {
    database = await createEmptyDatabase();
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
    // A table that is emptied keeps its statistics: those of the test before would be there for one that never had any.
    await client.query(
      'DELETE FROM pg_statistic USING pg_class WHERE starelid = oid AND relnamespace = current_schema()::regnamespace',
    );
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
    await client.query(asOnHotPath);
    // As after a few executions of a statement: one plan for all values, kept until statistics change.
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
        for (const { name, text } of givens.map((of) => of(dayOfId(uuidv7())))) {
          const scans = scansOf('delivery', await genericPlan(text));
          expect([name, scans.length]).toEqual([name, 1]); // its own partition, and no other
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
        // A single row without an index, and a row for each process.
        const small = new Set(['catalogue', 'process']);
        expect([name, wholeTables.filter((node) => !small.has(node['Relation Name']!))]).toEqual([name, []]);
        const unkeyed = scansOf('notification', plan).filter((node) => !node['Index Cond']);
        expect([name, unkeyed]).toEqual([name, []]);
      }
      const byKey = (from: string) =>
        `Index Scan delivery_pkey ((notification_id = ANY (ARRAY[${from}.notification_id])) AND (subscription_id = ${from}.subscription_id))`;
      expect(found).toEqual({
        'hand-out-due': [`Index Scan delivery_due_in_turn (${since('next_at')} AND (next_at <= now()))`, byKey('due')],
        'any-due': [`Index Only Scan delivery_due_in_turn (${since('next_at')} AND (next_at <= now()))`],
        'any-not-in-line': [`Index Only Scan delivery_not_in_line (${since('next_at')} AND (next_at <= now()))`],
        'free-of-dead-processes': ['Index Scan delivery_process (process = ANY ($1))', byKey('freed')],
        'free-after-lease': [
          `Index Scan delivery_queued ((queued_at IS NULL) AND ${since('next_at')} AND (next_at <= now()))`,
          byKey('freed'),
        ],
        'free-queued-before': [
          `Index Scan delivery_queued (${since('queued_at')} AND (queued_at < to_timestamp(($2 / '1000'::double precision))))`,
          byKey('freed'),
        ],
        'any-queued-for': [
          `Index Only Scan delivery_queued (${since('queued_at')} AND (queued_at < (now() - ($2 * '00:00:00.001'::interval))))`,
        ],
        'end-sending': [`Index Scan delivery_sending ${since('next_at')}`, byKey('ended')],
        'sending-undecided': [`Index Scan delivery_sending (${since('next_at', 3)} AND (next_at <= now()))`],
        'find-turns-left': [
          `Index Scan delivery_turn_left (${since('ended_at')} AND (ended_at <= (now() - ($2 * '00:00:00.001'::interval))))`,
        ],
      });
    });

    it.each(tables)('finds turns, and who is next, by the indexes of those, when the table %s', async (_, prepare) => {
      await prepare();
      const found: Record<string, string[]> = {};
      const day = dayOfId(uuidv7());
      for (const { name, text } of [lineUpItems, endTurnItems(day), findNextItems(day), passTurnItems(day, day)]) {
        const plan = await genericPlan(text);
        found[name] = [...scansOf('delivery', plan), ...scansOf('turn', plan), ...scansOf('in_line', plan)]
          .map(wayOf)
          .filter(isFirst);
      }
      const placeOf = (from: string) =>
        `Index Scan in_line_pkey ((subscription_id = ANY (ARRAY[${from}.subscription_id])) AND (object_key = ${from}.object_key) AND (turn_nr = ${from}.turn_nr))`;
      const turnOf = (from: string) =>
        `Index Scan turn_pkey ((subscription_id = ANY (ARRAY[${from}.subscription_id])) AND (object_key = ${from}.object_key))`;
      const deliveryOf = (from: string) =>
        `Index Scan delivery_pkey ((notification_id = ANY (ARRAY[${from}.notification_id])) AND (subscription_id = ${from}.subscription_id))`;
      expect(found).toEqual({
        'line-up': [
          `Index Only Scan delivery_not_in_line (${since('next_at')} AND (next_at <= now()))`,
          expect.stringMatching(
            /^Index Scan delivery_not_in_line \(\(next_at >= .+\) AND \(next_at <= COALESCE\(\$\d+, now\(\)\)\)\)$/,
          ),
          deliveryOf('placed_1'),
        ],
        'end-turns': [deliveryOf('item'), deliveryOf('ended_1'), turnOf('ended'), turnOf('turns_1')],
        'first-in-line': [
          deliveryOf('item'),
          turnOf('ended'),
          turnOf('next_1'),
          'Index Scan in_line_pkey ((subscription_id = mine.subscription_id) AND (object_key = mine.object_key))',
        ],
        'pass-turns': [
          deliveryOf('item'),
          deliveryOf('mine'),
          deliveryOf('mine_1'),
          turnOf('ended'),
          turnOf('h'),
          placeOf('mine_1'),
        ],
      });
    });

    // By the index of all that is queued, it would walk the queue of everybody.
    it.each(tables)(
      'counts what was released of a subscription by the index of that, when the table %s',
      async (_, prepare) => {
        await prepare();
        const ways = async () => scansOf('delivery', await genericPlan(releaseItems.text)).map(indexOf);
        expect(await ways()).toContain('delivery_released');
        // That of the version before, whose processes may still run.
        const before = releaseItems.text.replace("d.state IN ('queued', 'sending')", "d.state <= 'queued'");
        expect(before).not.toBe(releaseItems.text);
        expect(scansOf('delivery', await genericPlan(before)).map(indexOf)).toContain('delivery_released');
        // It is no choice: where nothing else is left, that one does not serve either.
        await client.query('BEGIN; DROP INDEX delivery_released; ALTER TABLE delivery DROP CONSTRAINT delivery_pkey');
        const others = await ways();
        await client.query('ROLLBACK');
        expect(others).not.toContain('delivery_queued');
        expect(others).not.toContain('delivery_sending');
      },
    );

    // Where a partition was analyzed while it was empty, its primary key looks as cheap. The statement is rare: its
    // first five executions on a connection are planned anew, and by then the partition has been analyzed again.
    it.each(tables.filter(([name]) => name !== 'was analyzed while it was empty'))(
      'finds what waits for a subscription by the index of that, when the table %s',
      async (_, prepare) => {
        await prepare();
        const [found] = scansOf('delivery', await genericPlan(endOfSubscriptionItems.text)).map(wayOf);
        expect(found).toBe(
          "Index Scan delivery_unsent ((subscription_id = $1) AND (state >= 'waiting'::delivery_state) AND (state <= 'held'::delivery_state))",
        );
        const newestId = "'ffffffff-ffff-7fff-bfff-ffffffffffff'"; // NULL would leave no partition to look at
        for (const [{ name, text }, ...values] of [
          [dropItems, 'NULL', newestId, 'now()', 'NULL'],
          [forgetDropItem, 'NULL', newestId, 'now()'],
          [newestHeldItem, 'NULL'],
          [readHeldItems, 'NULL', 'NULL'],
        ] as const) {
          const [way] = scansOf('delivery', await genericPlan(text, values)).map(wayOf);
          expect([name, way]).toEqual([
            name,
            expect.stringMatching(
              /^Index (Only )?Scan delivery_unsent \(\(subscription_id = \$1\) AND \(state = 'held'::delivery_state\)( AND .*)?\)$/,
            ),
          ]);
        }
      },
    );

    it.each(tables.filter(([name]) => name !== 'was analyzed while it was empty'))(
      'finds whether anything of a subscription is held, or released, by an index of that, when the table %s',
      async (_, prepare) => {
        await prepare();
        const indexesOf = async (text: string) => scansOf('delivery', await genericPlan(text)).map(indexOf);
        const ofHeld = ['delivery_held', 'delivery_unsent'];
        expect((await indexesOf(anyHeldItems.text)).filter((index) => !ofHeld.includes(index))).toEqual([]);
        expect(new Set(await indexesOf(anyReleasedItems.text))).toEqual(new Set(['delivery_released']));
        const [page] = scansOf('held_subscription', await genericPlan(readNotPausedItems.text));
        expect(page).toMatchObject({ 'Index Name': 'held_subscription_pkey' });
      },
    );
  });

  const indexOf = (node: PlanNode): string => {
    // A bitmap of rows is collected by the index scan below it.
    const scan = node['Node Type'] === 'Bitmap Heap Scan' ? node.Plans![0]! : node;
    const index = scan['Index Name'];
    return index === undefined ? node['Node Type'] : (wholeIndexes.get(index) ?? index);
  };
  const wayOf = (node: PlanNode): string =>
    [node['Node Type'], indexOf(node), ...(node['Index Cond'] ? [node['Index Cond']] : [])].join(' ');

  /** @param values in SQL, for a statement whose plan depends on whether they are NULL */
  async function genericPlan(text: string, values?: readonly string[]): Promise<PlanNode> {
    await client.query(`PREPARE explained AS ${text}`);
    const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
    const { rows } = await client.query<Explained>(
      `EXPLAIN (FORMAT JSON) EXECUTE explained ${count === 0 ? '' : `(${(values ?? Array<string>(count).fill('NULL')).join()})`}`,
    );
    await client.query('DEALLOCATE explained');
    return rows[0]!['QUERY PLAN'][0].Plan;
  }
});

const isFirst = (way: string, nr: number, ways: string[]): boolean => ways.indexOf(way) === nr;

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** Each partition has one of its own. */
const scansOf = (table: string, plan: PlanNode): PlanNode[] =>
  nodesOf(plan).filter((node) => node['Node Type'].endsWith('Scan') && (node['Relation Name'] ?? '').startsWith(table));
