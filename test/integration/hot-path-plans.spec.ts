import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import { readSettings } from '../../src/config/settings.js';
import { preferIndexes, Postgres } from '../../src/infra/postgres/postgres.js';
import { createPartition, partitionsBetween } from '../../src/ledger/partitions.js';
import { inspect, own, putBack, shortenLease } from '../../src/ledger/lease-statements.js';
import { claimSending, settle } from '../../src/ledger/statements.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  Plans?: PlanNode[];
}

const dayMs = 86_400_000;

describe('a connection of the hot path', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createDatabase();
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    await postgres.close();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const [yesterday, inAWeek] = [Date.now() - dayMs, Date.now() + 7 * dayMs];
    for (const partition of partitionsBetween(yesterday, inAWeek)) await client.query(createPartition(partition));
    await client.query(preferIndexes);
    // What every statement comes to after a few executions: one plan for whatever it is given, kept until statistics change.
    await client.query('SET plan_cache_mode = force_generic_plan');
  });

  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  it('has no statement compiled, not even where there is no index to take', async () => {
    const { rows } = await client.query<{ 'QUERY PLAN': [{ JIT?: unknown }] }>(
      'EXPLAIN (ANALYZE, FORMAT JSON) SELECT version FROM catalogue',
    );
    expect(rows[0]!['QUERY PLAN'][0].JIT).toBeUndefined();
  });

  it.each([
    ['is still empty', async () => {}],
    ['was filled a moment ago', () => fill('waiting')],
    ['was never seen with anything unfinished in it', () => fill('delivered').then(() => client.query('ANALYZE'))],
  ])('looks up by its primary key each delivery that it is given, when the table %s', async (_, prepare) => {
    await client.query('TRUNCATE delivery');
    await prepare();
    for (const { name, text } of [settle, inspect, putBack, shortenLease, own, claimSending]) {
      const scans = scansOfDelivery(await genericPlan(text));
      expect(scans.length).toBeGreaterThan(0);
      for (const { 'Node Type': type, 'Index Cond': condition } of scans) {
        expect(`${name}: ${type} ${condition}`).toMatch(
          /: Index Scan \(\(notification_id = \w+\.notification_id\) AND \(subscription_id = \w+\.subscription_id\)\)$/,
        );
      }
    }
  });

  async function fill(state: string): Promise<void> {
    await client.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, next_at)
       SELECT notification_id, gen_random_uuid(), $2, now() FROM unnest($1::uuid[]) AS n (notification_id), generate_series(1, 10)`,
      [Array.from({ length: 2000 }, () => uuidv7()), state],
    );
  }

  async function genericPlan(text: string): Promise<PlanNode> {
    await client.query(`PREPARE explained AS ${text}`);
    const count = Math.max(...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)));
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `EXPLAIN (FORMAT JSON) EXECUTE explained (${Array<string>(count).fill('NULL').join()})`,
    );
    await client.query('DEALLOCATE explained');
    return rows[0]!['QUERY PLAN'][0].Plan;
  }

  function scansOfDelivery(node: PlanNode): PlanNode[] {
    const isScan = node['Node Type'].endsWith('Scan') && (node['Relation Name'] ?? '').startsWith('delivery');
    return [...(isScan ? [node] : []), ...(node.Plans ?? []).flatMap(scansOfDelivery)];
  }
});
