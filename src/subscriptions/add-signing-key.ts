import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { ValidationProblem } from '../infra/http/problem.js';
import { InvalidSecret, newSecret, normalSecret, type SigningKey, type SigningScheme } from '../signing/signing-key.js';
import { findSigningKeys, insertSigningKey } from './signing-key-rows.js';

export interface NewSigningKey {
  scheme: SigningScheme;
  /** Undefined: one is made. */
  secret?: string | undefined;
}

export interface AddedSigningKey {
  key: SigningKey;
  /** Shown this once. Undefined: the caller has it, or receivers need only the public key. */
  secret: string | undefined;
}

/**
 * Adds a key to those of a subscription, in a change of the catalogue that gives the subscription its version.
 * @throws {ValidationProblem} for a secret that is none of the scheme, or belongs to a key that there is
 */
export async function addSigningKey(
  manager: EntityManager,
  subscriptionId: string,
  { scheme, secret: given }: NewSigningKey,
): Promise<AddedSigningKey> {
  const id = randomUUID();
  const secret = given === undefined ? newSecret(scheme) : checked(scheme, given);
  await insertSigningKey(manager, subscriptionId, { id, scheme, secret });
  const keys = await findSigningKeys(manager, subscriptionId);
  const key = keys.find((one) => one.id === id)!;
  if (keys.some((other) => other !== key && other.hasSameSecretAs(key))) {
    throw refused('unique', 'The subscription has a key with this secret.');
  }
  return { key, secret: given === undefined && scheme === 'v1' ? secret : undefined };
}

function checked(scheme: SigningScheme, secret: string): string {
  try {
    return normalSecret(scheme, secret);
  } catch (error) {
    if (error instanceof InvalidSecret) throw refused('invalid-secret', error.message);
    throw error;
  }
}

const refused = (code: string, reason: string) => new ValidationProblem([{ name: 'secret', code, reason }]);
