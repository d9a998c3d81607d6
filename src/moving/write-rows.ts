import { arrayOf } from '../infra/postgres/binary-array.js';
import { quoted, type Row } from './read-pages.js';
import type { Database, Table } from './tables.js';

/**
 * Every type reads what it writes. JSON would not do for the way: it refuses characters that a body, or a seal, may
 * have, and loses the order of names.
 */
export async function writeRows(database: Database, { name, columns }: Table, rows: readonly Row[]): Promise<void> {
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const values = columns.map(({ type }, nr) => `c${nr}::${type}`).join(', ');
  const arrays = columns.map((_, nr) => `$${nr + 1}::text[]`).join(', ');
  await database.query(
    `INSERT INTO ${quoted(name)} (${names}) OVERRIDING SYSTEM VALUE
     SELECT ${values} FROM unnest(${arrays}) AS r (${columns.map((_, nr) => `c${nr}`).join(', ')})`,
    columns.map((_, nr) =>
      arrayOf(
        'text',
        rows.map((row) => row[nr]),
      ),
    ),
  );
}
