import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { testServers } from './test-servers.js';

export interface TestDatabase {
  url: string;
  /** Ends the sessions that are still open, too. */
  drop(): Promise<void>;
}

/**
 * A database of its own without data, on the tests' PostgreSQL (where it may be migrated already) or on another server.
 */
export function createDatabase(serverUrl = testServers.databaseUrl()): Promise<TestDatabase> {
  return copyOf(serverUrl === testServers.databaseUrl() ? testServers.databaseTemplate() : 'template1', serverUrl);
}

/** One without tables: for a test that makes its own partitions. */
export function createEmptyDatabase(serverUrl = testServers.databaseUrl()): Promise<TestDatabase> {
  return copyOf('template1', serverUrl);
}

async function copyOf(template: string, serverUrl: string): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  // By its files: the other way writes each page to the log too, and costs half as much again.
  await queryOnce(serverUrl, `CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const drop = async () => void (await queryOnce(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`));
  return { url: url.href, drop };
}

/** On a connection of its own. @returns the rows */
export async function queryOnce<Row extends pg.QueryResultRow>(
  databaseUrl: string | undefined,
  statement: string,
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query<Row>(statement)).rows;
  } finally {
    await client.end();
  }
}
