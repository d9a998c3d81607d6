import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { dateOf, dayMs, midnightOfPartition } from './partitions.js';

/** Days that are told apart. More are kept where RETENTION_DAYS says so, and are summed. */
const mostDays = 60;

const read = (name: string, bytes: string, databaseBytes: string) =>
  statement(
    name,
    `SELECT c.relname AS name, (${bytes})::float8 AS bytes, (${databaseBytes})::float8 AS database_bytes
     FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
     WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)
     ORDER BY right(c.relname, 8) DESC`,
  );

const wholeBytes = '(SELECT pg_database_size(current_database()))';
/** As the last VACUUM found them: to ask for the files would take a third of a second of this process' only thread. */
const wholeBytesEmbedded = '8192 * (SELECT sum(relpages) FROM pg_class)';

const readSizes = read('measure-size', 'pg_total_relation_size(c.oid)', wholeBytes);

const readSizesEmbedded = read(
  'measure-size-embedded',
  `8192 * (c.relpages
     + coalesce((SELECT sum(i.relpages) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid WHERE x.indrelid = c.oid), 0)
     + coalesce((SELECT t.relpages FROM pg_class t WHERE t.oid = c.reltoastrelid), 0))`,
  wholeBytesEmbedded,
);

const readWhole = statement('database-size', `SELECT (${wholeBytes})::float8 AS bytes`);
const readWholeEmbedded = statement('database-size-embedded', `SELECT (${wholeBytesEmbedded})::float8 AS bytes`);

/** Bytes of the whole database. Asks the file system for each table and index. */
export async function readDatabaseSize(query: Query, isEmbedded: boolean): Promise<number> {
  const [row] = await query<{ bytes: number }>(isEmbedded ? readWholeEmbedded : readWhole);
  return row!.bytes;
}

/**
 * Bytes of the database: tables and indexes of the notifications of a day, with deliveries and attempts, under
 * `2026-11-22` or `older`, and all else under `rest`. Asks the file system for each table and index: not for every
 * scrape.
 */
export async function measureSize(postgres: Postgres): Promise<ReadonlyMap<string, number>> {
  // The size of a partition that is dropped at this moment is null.
  const rows = await postgres.query<{ name: string; bytes: number | null; database_bytes: number }>(
    postgres.isEmbedded ? readSizesEmbedded : readSizes,
  );
  const bytesByDay = new Map<string, number>();
  for (const { name, bytes } of rows) {
    const midnight = midnightOfPartition(name);
    if (midnight === undefined) continue;
    const day = dateOf(midnight / dayMs);
    const label = bytesByDay.has(day) || bytesByDay.size < mostDays ? day : 'older';
    bytesByDay.set(label, (bytesByDay.get(label) ?? 0) + (bytes ?? 0));
  }
  const ofDays = [...bytesByDay.values()].reduce((sum, bytes) => sum + bytes, 0);
  return bytesByDay.set('rest', Math.max(0, (rows[0]?.database_bytes ?? 0) - ofDays));
}
