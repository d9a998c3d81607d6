import type { EntityManager } from 'typeorm';
import { isUniqueViolation } from '../infra/postgres/postgres-errors.js';
import type { OnceKey } from './once-key.js';

/* Keys of requests that create something in a transaction of TypeORM: hence its manager and numbered parameters. */

/** The resource that was created under the key before; undefined: none, or too long ago. */
export async function findCreated(
  manager: EntityManager,
  { application, operation, key }: OnceKey,
): Promise<{ id: string; requestHash: string | null } | undefined> {
  const [row] = (await manager.query(
    `SELECT result_id, request_hash FROM once_key
     WHERE application = $1 AND operation = $2 AND key = $3 AND expires_at > now()`,
    [application, operation, key],
  )) as { result_id: string; request_hash: string | null }[];
  return row && { id: row.result_id, requestHash: row.request_hash };
}

/**
 * Reserves the key for what is created under `id`, in the same transaction.
 * @throws {KeyReserved} when another request reserved it first
 */
export async function reserveKey(
  manager: EntityManager,
  { application, operation, key, requestHash, keepSeconds }: OnceKey,
  id: string,
): Promise<void> {
  await manager.query(
    `DELETE FROM once_key WHERE application = $1 AND operation = $2 AND key = $3 AND expires_at <= now()`,
    [application, operation, key],
  );
  try {
    await manager.query(
      `INSERT INTO once_key (application, operation, key, result_id, request_hash, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 s')`,
      [application, operation, key, id, requestHash, keepSeconds],
    );
  } catch (error) {
    throw isUniqueViolation(error) ? new KeyReserved() : error;
  }
}

export class KeyReserved extends Error {}
