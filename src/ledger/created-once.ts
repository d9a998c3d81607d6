import type { Query } from '../infra/postgres/postgres.js';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import { statement } from '../infra/postgres/statement.js';
import type { OnceKey } from './once-key.js';

// Keys of requests that create a resource of the admin API. Those of publications: accept-on-terms.ts, and
// find-by-key.ts for one that is refused.

const forgetExpired = statement(
  'forget-expired-key',
  `DELETE FROM once_key
   WHERE application = $application AND operation = $operation AND key = $key AND expires_at <= now()`,
);

const reserve = statement(
  'reserve-key',
  `INSERT INTO once_key (application, operation, key, result_id, request_hash, expires_at)
   VALUES ($application, $operation, $key, $id, $request_hash, now() + $keep_seconds * interval '1 s')`,
);

/**
 * Reserves the key for what is created under `id`, in the same transaction.
 * @throws {KeyReserved} when another request reserved it first
 */
export async function reserveKey(
  query: Query,
  { application, operation, key, requestHash, keepSeconds }: OnceKey,
  id: string,
): Promise<void> {
  const name = { application, operation, key };
  await query(forgetExpired, name);
  try {
    await query(reserve, { ...name, id, request_hash: requestHash, keep_seconds: keepSeconds });
  } catch (error) {
    throw isUniqueViolation(error) ? new KeyReserved() : error;
  }
}

export class KeyReserved extends Error {}
