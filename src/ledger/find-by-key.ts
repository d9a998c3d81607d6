import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { OnceKey } from './once-key.js';

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

/** Looks up a key outside of the statement that accepts, which looks itself. Undefined: nothing was done under it, or too long ago. */
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
