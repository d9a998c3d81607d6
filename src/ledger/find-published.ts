import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { OnceKey } from './once-key.js';

const find = statement(
  'find-published',
  `SELECT result_id, request_hash, is_duplicate FROM once_key
   WHERE application = $application AND operation = $operation AND key = $key AND expires_at > now()`,
);

export interface PublishedBefore {
  notificationId: string;
  requestHash: string | null;
  isDuplicate: boolean;
}

/** The notification that a key leads to, for a request that is not accepted now: accepting looks itself. Undefined: none, or too long ago. */
export async function findPublished(
  postgres: Postgres,
  { application, operation, key }: OnceKey,
): Promise<PublishedBefore | undefined> {
  const [row] = await postgres.query<{ result_id: string; request_hash: string | null; is_duplicate: boolean }>(find, {
    application,
    operation,
    key,
  });
  return row && { notificationId: row.result_id, requestHash: row.request_hash, isDuplicate: row.is_duplicate };
}
