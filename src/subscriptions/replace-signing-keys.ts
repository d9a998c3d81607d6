import type { EntityManager } from 'typeorm';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import type { SigningScheme } from '../signing/signing-key.js';
import { addSigningKey } from './add-signing-key.js';
import { noteSigningKeys } from './note-signing-keys.js';
import {
  endSigningKeyLater,
  eraseSigningKey,
  findSigningKeys,
  signingKeyPlace,
  usualGraceSeconds,
} from './signing-key-rows.js';

/** A key that signs, with its secret. */
export interface StoredSigningKey {
  id: string;
  scheme: SigningScheme;
  /** With its prefix; undefined where it cannot be decrypted here. */
  secret: string | undefined;
  /** It signs only until its grace is over. */
  isRotated: boolean;
}

/** Those that sign, of each subscription that has any, the newest first. */
export async function storedSigningKeys(
  manager: EntityManager,
  cipher: SecretCipher,
  subscriptionIds: readonly string[],
): Promise<Map<string, StoredSigningKey[]>> {
  const rows = await manager.query<(Omit<StoredSigningKey, 'secret'> & { subscriptionId: string; secret: string })[]>(
    `SELECT id, subscription_id AS "subscriptionId", scheme, secret, ends_at IS NOT NULL AS "isRotated" FROM signing_key
     WHERE subscription_id = ANY($1::uuid[]) AND (ends_at IS NULL OR ends_at > now()) ORDER BY created_at DESC`,
    [subscriptionIds],
  );
  const keys = new Map<string, StoredSigningKey[]>();
  for (const { subscriptionId, secret, ...key } of rows) {
    const kept = keys.get(subscriptionId) ?? [];
    keys.set(subscriptionId, kept);
    kept.push({ ...key, secret: cipher.decryptIfPossible(secret, signingKeyPlace(key.id)) });
  }
  return keys;
}

/**
 * Puts keys in the places of others, within a change of the catalogue. Those that are left sign for a day more; where
 * nothing takes their places, they end now.
 * @throws {ValidationProblem} for a secret that is none of its scheme
 */
export async function replaceSigningKeys(
  manager: EntityManager,
  version: number,
  cipher: SecretCipher,
  subscriptionId: string,
  { added, left }: { added: readonly { scheme: SigningScheme; secret: string }[]; left: readonly string[] },
): Promise<void> {
  await manager.query('UPDATE subscription SET version = $1 WHERE id = $2', [version, subscriptionId]);
  const before = await findSigningKeys(manager, subscriptionId);
  for (const id of left) {
    if (added.length === 0) await eraseSigningKey(manager, id);
    else await endSigningKeyLater(manager, id, usualGraceSeconds);
  }
  for (const key of added) await addSigningKey(manager, cipher, subscriptionId, key);
  const done = left.length === 0 ? 'created' : added.length === 0 ? 'ended' : 'rotated';
  const after = await findSigningKeys(manager, subscriptionId);
  await noteSigningKeys(manager, `signing-key-${done}`, subscriptionId, before, after);
}
