import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { SecretCipher } from './secret-cipher.service.js';

/** A column that holds secrets. Its table has an `id` (uuid), and an index on `(secret_key_of(column), id)`. */
export interface SecretColumn {
  table: string;
  column: string;
}

/**
 * Every column with secrets: one that is missing here is never encrypted after the fact, nor rewritten with a new key.
 */
export const secretColumns: readonly SecretColumn[] = [
  { table: 'application', column: 'secret' },
  { table: 'subscription', column: 'auth' },
  { table: 'subscription', column: 'credentials' },
  { table: 'signing_key', column: 'secret' },
];

interface StoredSecret {
  id: string;
  stored: string;
}

interface Rewritten extends StoredSecret {
  rewritten: string;
}

/** The answer of `secret_key_of` for a secret that is not encrypted; for no secret it is null. */
export const plain = '';

const pageLength = 500;

const rewritten = rowsOf<Rewritten>('rewritten', {
  id: ['uuid', ({ id }) => id],
  stored: ['text', ({ stored }) => stored],
  text: ['text', (each) => each.rewritten],
});

const statementsOf = ({ table, column }: SecretColumn) => {
  const keyId = `secret_key_of(${column})`;
  return {
    nextKey: statement(
      `secrets-next-key ${table}.${column}`,
      `SELECT id, ${column} AS stored, ${keyId} AS key_id FROM ${table}
       WHERE ${column} IS NOT NULL AND ${keyId} > $after ORDER BY ${keyId}, id LIMIT 1`,
    ),
    page: statement(
      `secrets-page ${table}.${column}`,
      `SELECT id, ${column} AS stored FROM ${table} WHERE ${column} IS NOT NULL AND ${keyId} = $key_id ORDER BY id LIMIT ${pageLength}`,
    ),
    // One that was changed in the meantime stays as it was changed.
    rewrite: statement(
      `secrets-rewrite ${table}.${column}`,
      `UPDATE ${table} SET ${column} = rewritten.text FROM ${rewritten.from}
       WHERE ${table}.id = rewritten.id AND ${table}.${column} = rewritten.stored`,
    ),
  };
};

const placesOf = secretColumns.map((secrets) => ({
  name: `${secrets.table}.${secrets.column}`,
  ...statementsOf(secrets),
}));

/** For each key that something is encrypted with, one of the secrets in each column. */
export async function sampleByKey(
  postgres: Pick<Postgres, 'query'>,
): Promise<{ keyId: string; stored: string; place: string }[]> {
  const samples = [];
  for (const { name, nextKey } of placesOf) {
    for (let after = plain; ;) {
      const [found] = await postgres.query<StoredSecret & { key_id: string }>(nextKey, { after });
      if (!found) break;
      after = found.key_id;
      samples.push({ keyId: found.key_id, stored: found.stored, place: `${name}/${found.id}` });
    }
  }
  return samples;
}

/**
 * Encrypts anew, with the first key of the ring and in short statements, what is encrypted with other keys. It may run
 * in several processes at once and while others change secrets; ended in the middle, it goes on where it was.
 * @param keyIds of these other keys; `plain` for what is not encrypted
 * @param onProgress is told after each page how many of a column were rewritten
 * @throws {UnreadableSecret}
 */
export async function rewriteSecrets(
  postgres: Postgres,
  cipher: SecretCipher,
  keyIds: readonly string[],
  onProgress: (place: string, count: number) => void,
): Promise<void> {
  for (const { name, page, rewrite } of placesOf) {
    for (const keyId of keyIds) {
      for (;;) {
        const found = await postgres.query<StoredSecret>(page, { key_id: keyId });
        if (found.length === 0) break;
        const rows = found.map(({ id, stored }) => {
          const place = `${name}/${id}`;
          return { id, stored, rewritten: cipher.encrypt(cipher.decrypt(stored, place), place) };
        });
        onProgress(name, await postgres.affected(rewrite, rewritten.bind(rows)));
      }
    }
  }
}
