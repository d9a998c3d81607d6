import { hashPlace } from '../request-keys/hash-place.js';
import { lowestId } from '../ledger/partitions.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { secretColumns } from '../secrets/stored-secrets.js';
import type { Row } from './read-pages.js';
import type { Database, Table } from './tables.js';

/** Each stands for the key ring of one place: `DATA_DIR`, and the settings. */
export type Ciphers = readonly [SecretCipher, SecretCipher];

/** @throws {UnreadableSecret} where neither reads it */
function decrypt([one, other]: Ciphers, stored: string, place: string): string {
  return one.decryptIfPossible(stored, place) ?? other.decrypt(stored, place);
}

/**
 * The same row, with its secrets encrypted as the settings say instead of with the key of `DATA_DIR`, which may be
 * thrown away with it.
 * @throws {UnreadableSecret}
 */
export function secretsCarrier(table: Table, from: Ciphers, to: SecretCipher): (row: Row) => Row {
  const placeOf = (column: string) => table.columns.findIndex(({ name }) => name === column);
  const id = placeOf('id');
  const changes = secretColumns
    .filter((each) => each.table === table.name)
    .map(({ column }) => ({
      at: placeOf(column),
      change: (stored: string, row: Row) => {
        const place = `${table.name}.${column}/${row[id]}`;
        return to.encrypt(decrypt(from, stored, place), place);
      },
    }));
  if (table.name === 'once_key') {
    const [application, operation, key] = ['application', 'operation', 'key'].map(placeOf);
    changes.push({
      at: placeOf('request_hash'),
      change: (stored, row) => {
        const place = hashPlace({ application: row[application!], operation: row[operation!], key: row[key!] });
        // One that a key of before has encrypted cannot be read here either (docs/decisions/0032). A hash that is
        // readable is of a request without a secret.
        const hash = from.map((cipher) => cipher.decryptIfPossible(stored, place)).find((found) => found !== undefined);
        return hash === undefined || hash === stored ? stored : to.encrypt(hash, place);
      },
    });
  }
  if (changes.length === 0) return (row) => row;
  return (row) => {
    const carried = [...row];
    for (const { at, change } of changes) {
      const stored = row[at];
      if (typeof stored === 'string') carried[at] = change(stored, row);
    }
    return carried;
  };
}

const pageLength = 500;

/**
 * Reads every secret that is stored there.
 * @returns how many there are
 * @throws {UnreadableSecret}
 */
export async function readAllSecrets(database: Database, cipher: SecretCipher): Promise<number> {
  let count = 0;
  for (const { table, column } of secretColumns) {
    for (let after = lowestId; ;) {
      const rows = (await database.query(
        `SELECT id, ${column} AS stored FROM ${table} WHERE ${column} <> '' AND id > $1 ORDER BY id LIMIT ${pageLength}`,
        [after],
      )) as { id: string; stored: string }[];
      if (rows.length === 0) break;
      for (const { id, stored } of rows) cipher.decrypt(stored, `${table}.${column}/${id}`);
      count += rows.length;
      after = rows.at(-1)!.id;
    }
  }
  return count;
}
