import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

interface Explained {
  'QUERY PLAN': [{ Plan: { 'Node Type': string }; JIT?: unknown }];
}

describe('a connection of the hot path', () => {
  let database: TestDatabase;
  let postgres: Postgres;

  beforeAll(async () => {
    database = await createDatabase();
    postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
  });

  afterAll(async () => {
    await postgres.close();
    await database.drop();
  });

  it('takes an index although the table is still empty', async () => {
    const { Plan } = await explain("SELECT * FROM process WHERE id = 'nobody'");
    expect(Plan['Node Type']).toMatch(/^(Index|Bitmap)/);
  });

  it('has no statement compiled, not even where there is no index to take', async () => {
    const explained = await explain('SELECT version FROM catalogue');
    expect(explained.Plan['Node Type']).toBe('Seq Scan');
    expect(explained.JIT).toBeUndefined();
  });

  async function explain(text: string): Promise<Explained['QUERY PLAN'][0]> {
    const statement = { name: `explain ${text}`, text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}` };
    const [row] = await postgres.query<Explained>(statement, []);
    return row!['QUERY PLAN'][0];
  }
});
