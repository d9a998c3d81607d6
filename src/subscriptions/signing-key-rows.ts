import type { EntityManager } from 'typeorm';
import { SigningKey, type SigningScheme } from '../signing/signing-key.js';

/** A row of the table `signing_key`, with its times in milliseconds since 1970. */
export interface SigningKeyRow {
  id: string;
  scheme: SigningScheme;
  /** As it is shown, with its prefix. */
  secret: string;
  created_at: number;
  ends_at: number | null;
}

const milliseconds = (column: string) => `extract(epoch FROM signing_key.${column})::float8 * 1000`;

/**
 * As SQL: the rows of a subscription's keys that have not ended, in one value; null where there are none.
 * @param subscriptionId as SQL
 */
export const signingKeysOfSql = (subscriptionId: string): string =>
  `(SELECT json_agg(json_build_object('id', signing_key.id, 'scheme', signing_key.scheme, 'secret', signing_key.secret,
      'created_at', ${milliseconds('created_at')}, 'ends_at', ${milliseconds('ends_at')}))
    FROM signing_key WHERE signing_key.subscription_id = ${subscriptionId}
      AND (signing_key.ends_at IS NULL OR signing_key.ends_at > now()))`;

const none: readonly SigningKey[] = [];

/** The newest first: a receiver finds the key that it was given last at once. */
export function readSigningKeys(rows: readonly SigningKeyRow[] | null): readonly SigningKey[] {
  if (!rows) return none;
  return rows
    .map((row) => new SigningKey(row.id, row.scheme, row.secret, row.created_at, row.ends_at))
    .sort((one, other) => other.createdAt - one.createdAt);
}

/** Those of a subscription that have not ended. */
export async function findSigningKeys(manager: EntityManager, subscriptionId: string): Promise<readonly SigningKey[]> {
  const [row] = await manager.query<[{ keys: SigningKeyRow[] | null }]>(
    `SELECT ${signingKeysOfSql('$1::uuid')} AS keys`,
    [subscriptionId],
  );
  return readSigningKeys(row.keys);
}

/* What follows belongs in a change of the catalogue that gives the subscription its version. */

export interface NewSigningKey {
  id: string;
  scheme: SigningScheme;
  /** As it is shown, with its prefix. */
  secret: string;
}

export async function insertSigningKey(
  manager: EntityManager,
  subscriptionId: string,
  { id, scheme, secret }: NewSigningKey,
): Promise<void> {
  // Not now(), which is when the transaction began: one that waited for another would look older.
  await manager.query(
    `INSERT INTO signing_key (id, subscription_id, scheme, secret, created_at)
     VALUES ($1, $2, $3, $4, clock_timestamp())`,
    [id, subscriptionId, scheme, secret],
  );
}

/** The key signs for so many seconds more. */
export async function endSigningKeyLater(manager: EntityManager, id: string, graceSeconds: number): Promise<void> {
  await manager.query(`UPDATE signing_key SET ends_at = clock_timestamp() + $2 * interval '1 s' WHERE id = $1`, [
    id,
    graceSeconds,
  ]);
}

export async function eraseSigningKey(manager: EntityManager, id: string): Promise<void> {
  await manager.query('DELETE FROM signing_key WHERE id = $1', [id]);
}

export async function eraseSigningKeysOf(manager: EntityManager, subscriptionId: string): Promise<void> {
  await manager.query('DELETE FROM signing_key WHERE subscription_id = $1', [subscriptionId]);
}

/** In one transaction. */
const mostErased = 1000;

/** Erases keys that have ended, up to a number, and gives their subscriptions that version. */
export async function eraseEndedSigningKeys(manager: EntityManager, version: number): Promise<void> {
  await manager.query(
    `WITH ended AS (SELECT id FROM signing_key WHERE ends_at <= now() ORDER BY ends_at LIMIT $2),
     erased AS (DELETE FROM signing_key USING ended WHERE signing_key.id = ended.id RETURNING subscription_id)
     UPDATE subscription SET version = $1 WHERE id IN (SELECT subscription_id FROM erased)`,
    [version, mostErased],
  );
}

/** Whether any key has ended and is not erased yet. */
export async function hasEndedSigningKeys(manager: EntityManager): Promise<boolean> {
  const rows = await manager.query<unknown[]>('SELECT FROM signing_key WHERE ends_at <= now() LIMIT 1');
  return rows.length > 0;
}
