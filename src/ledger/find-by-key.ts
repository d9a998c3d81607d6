import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { KeyReserved, reserveKey } from './created-once.js';
import type { OnceKey } from './once-key.js';
import { lowestId } from './partitions.js';

const find = statement(
  'find-by-key',
  `SELECT result_id, request_hash, is_duplicate FROM once_key
   WHERE application = $application AND operation = $operation AND key = $key AND expires_at > now()`,
);

/** A request that was carried out under its key. */
interface CarriedOutBefore {
  /** Of the notification, or of the resource of the admin API. */
  id: string;
  requestHash: string | null;
  /** Of a notification: it was found equal to an earlier one. */
  isDuplicate: boolean;
}

/**
 * Looks up a key outside of the statement that accepts, which looks itself. Undefined: nothing was done under it, or
 * too long ago.
 */
export async function findByKey(
  postgres: Postgres,
  { application, operation, key }: OnceKey,
): Promise<CarriedOutBefore | undefined> {
  const [row] = await postgres.query<{ result_id: string; request_hash: string | null; is_duplicate: boolean }>(find, {
    application,
    operation,
    key,
  });
  return row && { id: row.result_id, requestHash: row.request_hash, isDuplicate: row.is_duplicate };
}

class KeyFree extends Error {}

/**
 * The same, for a request that is about to be refused: another process may just be storing the first one with this key,
 * whose row nobody sees before it is committed. Only who wants the key waits for that. Where it was free, it is free
 * again afterwards.
 */
export async function findByKeyOrWait(postgres: Postgres, key: OnceKey): Promise<CarriedOutBefore | undefined> {
  const before = await findByKey(postgres, key);
  if (before) return before;
  try {
    await postgres.transaction(async (query) => {
      await reserveKey(query, key, lowestId); // the id of nothing: its row is taken back
      throw new KeyFree();
    });
  } catch (error) {
    if (error instanceof KeyFree) return undefined;
    if (!(error instanceof KeyReserved)) throw error;
  }
  return findByKey(postgres, key);
}
