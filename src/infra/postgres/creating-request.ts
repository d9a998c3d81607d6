import type { EntityManager } from 'typeorm';
import { isUniqueViolation } from './postgres-errors.js';

/** A request that creates something, and must do so once however often it is repeated. */
export interface CreatingRequest {
  /** Client id of who asks: the same key of another one is another key. */
  application: string;
  operation: string;
  key: string;
  /** Tells whether a repeated request is the same. */
  requestHash: string;
  keepSeconds: number;
}

/** What was created under the key before; undefined: nothing, or too long ago. */
export async function createdBefore(
  manager: EntityManager,
  { application, operation, key }: CreatingRequest,
): Promise<{ id: string; requestHash: string | null } | undefined> {
  const [row] = (await manager.query(
    `SELECT result_id, request_hash FROM request_key
     WHERE application = $1 AND operation = $2 AND key = $3 AND expires_at > now()`,
    [application, operation, key],
  )) as { result_id: string; request_hash: string | null }[];
  return row && { id: row.result_id, requestHash: row.request_hash };
}

/**
 * Takes the key for what is created under `id`, in the same transaction.
 * @throws {KeyTaken} when another request took it since somebody looked
 */
export async function takeKey(
  manager: EntityManager,
  { application, operation, key, requestHash, keepSeconds }: CreatingRequest,
  id: string,
): Promise<void> {
  await manager.query(
    `DELETE FROM request_key WHERE application = $1 AND operation = $2 AND key = $3 AND expires_at <= now()`,
    [application, operation, key],
  );
  try {
    await manager.query(
      `INSERT INTO request_key (application, operation, key, result_id, request_hash, expires_at)
       VALUES ($1, $2, $3, $4, $5, now() + $6 * interval '1 s')`,
      [application, operation, key, id, requestHash, keepSeconds],
    );
  } catch (error) {
    throw isUniqueViolation(error) ? new KeyTaken() : error;
  }
}

export class KeyTaken extends Error {}
