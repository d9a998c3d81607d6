import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { secretsCarrier, type Ciphers } from './carry-secrets.js';
import { quoted, readPages } from './read-pages.js';
import type { Database, Table } from './tables.js';
import { MoveRefused } from './why-not.js';
import { writeRows } from './write-rows.js';

/** Is told how many rows of a table have been copied so far, after each page. */
export type OnRows = (table: string, rows: number) => void;

/** @returns how many rows it has */
export async function copyTable(
  source: Database,
  target: Database,
  table: Table,
  { from, to }: { from: Ciphers; to: SecretCipher },
  onRows: OnRows,
): Promise<number> {
  const carry = secretsCarrier(table, from, to);
  let copied = 0;
  for await (const page of readPages(source, table)) {
    await writeRows(target, table, page.map(carry));
    copied += page.length;
    onRows(table.name, copied);
  }
  await refuseMissing(source, table.name, copied);
  // The planner of a database that has just been filled knows nothing of it, and autovacuum looks only once a minute.
  if (copied > 0) await target.query(`ANALYZE ${quoted(table.name)}`);
  return copied;
}

/**
 * The embedded database does not flush what it writes. Where power failed, an index may have lost rows that the table
 * has: they are counted in the table itself.
 */
async function refuseMissing(source: Database, name: string, copied: number): Promise<void> {
  const [found] = (await source.query(
    `SELECT count(*)::int AS count FROM ${quoted(name)} WHERE ctid >= '(0,0)'::tid`,
  )) as [{ count: number }];
  if (found.count !== copied)
    throw new MoveRefused(
      `The embedded database is damaged: table ${name} has ${found.count} rows, and its index leads to ${copied}. Nothing was moved. Restore a backup of DATA_DIR and run this again.`,
    );
}
