import type { EntityManager } from 'typeorm';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { SigningKey, type SigningScheme } from '../signing/signing-key.js';

/** A signing key as it may be shown: without its secret. */
export interface ShownSigningKey {
  id: string;
  scheme: SigningScheme;
  /** With its prefix; null of `v1`. */
  publicKey: string | null;
  createdAt: Date;
  /** Null: it was not rotated. */
  endsAt: Date | null;
}

/** The columns that signing needs. */
export interface SigningKeyRow {
  id: string;
  scheme: SigningScheme;
  /** As it is stored. */
  secret: string;
  /** Both in milliseconds since 1970. */
  created_at: number;
  ends_at: number | null;
}

export const signingKeyPlace = (id: string): string => `signing_key.secret/${id}`;

const milliseconds = (column: string) => `extract(epoch FROM signing_key.${column})::float8 * 1000`;
const signs = '(signing_key.ends_at IS NULL OR signing_key.ends_at > now())';

/**
 * As SQL: the rows of a subscription's keys that have not ended, in one value; null where there are none.
 * @param subscriptionId as SQL
 */
export const signingKeysOfSql = (subscriptionId: string): string =>
  `(SELECT json_agg(json_build_object('id', signing_key.id, 'scheme', signing_key.scheme, 'secret', signing_key.secret,
      'created_at', ${milliseconds('created_at')}, 'ends_at', ${milliseconds('ends_at')}))
    FROM signing_key WHERE signing_key.subscription_id = ${subscriptionId} AND ${signs})`;

/**
 * As SQL: how many of those there are.
 * @param subscriptionId as SQL
 */
export const countSigningKeysSql = (subscriptionId: string): string =>
  `(SELECT count(*)::int FROM signing_key WHERE signing_key.subscription_id = ${subscriptionId} AND ${signs})`;

const none: readonly SigningKey[] = [];

/**
 * The newest first: a receiver finds the key that it was given last at once.
 * @throws {UnreadableSecret}
 */
export function readSigningKeys(rows: readonly SigningKeyRow[] | null, cipher: SecretCipher): readonly SigningKey[] {
  if (!rows) return none;
  return rows
    .toSorted((one, other) => other.created_at - one.created_at)
    .map(
      ({ id, scheme, secret, ends_at: endsAt }) =>
        new SigningKey(id, scheme, cipher.decrypt(secret, signingKeyPlace(id)), endsAt),
    );
}

/** Those of a subscription that have not ended, the newest first. */
export async function findSigningKeys(manager: EntityManager, subscriptionId: string): Promise<ShownSigningKey[]> {
  return manager.query<ShownSigningKey[]>(
    `SELECT id, scheme, public_key AS "publicKey", created_at AS "createdAt", ends_at AS "endsAt"
     FROM signing_key WHERE subscription_id = $1 AND ${signs} ORDER BY created_at DESC`,
    [subscriptionId],
  );
}

/* All that follows belongs in a change of the catalogue that gives the subscription its version. */

interface SigningKeyToStore {
  id: string;
  scheme: SigningScheme;
  /** Both with their prefixes. */
  secret: string;
  publicKey: string | null;
}

export async function insertSigningKey(
  manager: EntityManager,
  cipher: SecretCipher,
  subscriptionId: string,
  { id, scheme, secret, publicKey }: SigningKeyToStore,
): Promise<ShownSigningKey> {
  // Not now(), which is when the transaction began: one that waited for another would look older.
  const [row] = await manager.query<[{ createdAt: Date }]>(
    `INSERT INTO signing_key (id, subscription_id, scheme, secret, public_key, created_at)
     VALUES ($1, $2, $3, $4, $5, clock_timestamp()) RETURNING created_at AS "createdAt"`,
    [id, subscriptionId, scheme, cipher.encrypt(secret, signingKeyPlace(id)), publicKey],
  );
  return { id, scheme, publicKey, createdAt: row.createdAt, endsAt: null };
}

/** A day: for so long a key that another one has replaced goes on to sign, where nobody says otherwise. */
export const usualGraceSeconds = 86_400;

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

export async function eraseSigningKeysOf(manager: EntityManager, subscriptionIds: readonly string[]): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query('DELETE FROM signing_key WHERE subscription_id = ANY ($1::uuid[])', [subscriptionIds]);
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
