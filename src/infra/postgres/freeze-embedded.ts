import { checkpointEmbedded } from './checkpoint-embedded.js';
import type { Postgres } from './postgres.js';
import { isMissingTable } from './postgres-errors.js';

/** Half the age at which PostgreSQL's autovacuum does it, and a twentieth of that at which Postgres stops to write. */
const oldAge = 100_000_000;

/** With the catalogues. Those of TOAST one by one as well, so that none keeps the thread together with its table. */
const oldTables = `
  SELECT oid::regclass::text AS name FROM pg_class
  WHERE relkind IN ('r', 'm', 't') AND relpersistence <> 't' AND age(relfrozenxid) > $1
  ORDER BY age(relfrozenxid) DESC`;

/** Databases that nobody ever connects to here, so that nothing in them could be frozen. */
const templates = `
  SELECT datname AS name, datistemplate AS is_template FROM pg_database WHERE datname IN ('template0', 'template1')`;

/**
 * Postgres has some two thousand million transaction ids, uses them again, and lets nothing be written any more before
 * an id that is still in a table would come up: 16 months of 25 notifications a second. PGlite has no autovacuum, which
 * elsewhere marks old rows as older than every id. The templates of an embedded database, of which nobody makes
 * another, are dropped: their ids would hold up all the same. Most rows are frozen already as their table is vacuumed
 * (partition-keeper.service.ts): little is left of a table here.
 */
export async function freezeEmbedded(
  postgres: Pick<Postgres, 'isEmbedded' | 'upkeep' | 'query'>,
  stopping: AbortSignal,
  olderThan = oldAge,
): Promise<void> {
  if (!postgres.isEmbedded) return;
  const { upkeep } = postgres;
  for (const { name, is_template } of await upkeep.query<{ name: string; is_template: boolean }[]>(templates)) {
    // One whose DROP was cut off is none any more, and all that it allows is another DROP.
    if (is_template) await upkeep.query(`ALTER DATABASE ${name} IS_TEMPLATE false`);
    await upkeep.query(`DROP DATABASE ${name}`);
  }
  for (const { name } of await upkeep.query<{ name: string }[]>(oldTables, [olderThan])) {
    if (stopping.aborted) return;
    try {
      await upkeep.query(`VACUUM (FREEZE, PROCESS_TOAST false) ${name}`);
    } catch (error) {
      if (!isMissingTable(error)) throw error; // a day that was dropped meanwhile
    }
    await checkpointEmbedded(postgres); // a table may be written to the log as a whole
  }
}
