import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { dayOfPartition } from './partitions.js';

/** Days that are told apart. More are kept where RETENTION_DAYS says so, and are summed. */
const mostDays = 60;

const readSizes = statement(
  'measure-size',
  `SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS bytes,
     pg_database_size(current_database())::float8 AS database_bytes
   FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
   WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)
   ORDER BY right(c.relname, 8) DESC`,
);

/**
 * Bytes of the database: tables and indexes of the notifications of a day, with deliveries and attempts, under `2026-11-22` or
 * `older`, and all else under `rest`. Asks the file system for each table and index: not for every scrape.
 */
export async function measureSize(postgres: Postgres): Promise<ReadonlyMap<string, number>> {
  // The size of a partition that is dropped at this moment is null.
  const rows = await postgres.query<{ name: string; bytes: number | null; database_bytes: number }>(readSizes);
  const bytesByDay = new Map<string, number>();
  for (const { name, bytes } of rows) {
    const midnight = dayOfPartition(name);
    if (midnight === undefined) continue;
    const day = new Date(midnight).toISOString().slice(0, 10);
    const label = bytesByDay.has(day) || bytesByDay.size < mostDays ? day : 'older';
    bytesByDay.set(label, (bytesByDay.get(label) ?? 0) + (bytes ?? 0));
  }
  const ofDays = [...bytesByDay.values()].reduce((sum, bytes) => sum + bytes, 0);
  return bytesByDay.set('rest', Math.max(0, (rows[0]?.database_bytes ?? 0) - ofDays));
}
