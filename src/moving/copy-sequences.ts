import { quoted } from './read-pages.js';
import type { Database } from './tables.js';

const selectSequences = `SELECT relname AS name FROM pg_class
  WHERE relkind = 'S' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'catalogue'::regclass)`;

/**
 * The next number of each is higher than any that either database has given. A sequence is not set back with its
 * transaction, which does no harm.
 */
export async function copySequences(source: Database, target: Database): Promise<void> {
  for (const { name } of (await source.query(selectSequences)) as { name: string }[]) {
    const [found] = (await source.query(`SELECT last_value::text AS last, is_called FROM ${quoted(name)}`)) as [
      { last: string; is_called: boolean },
    ];
    await target.query(
      `SELECT setval('${quoted(name)}'::regclass, greatest(last_value, $1::bigint), is_called OR $2) FROM ${quoted(name)}`,
      [found.last, found.is_called],
    );
  }
}
