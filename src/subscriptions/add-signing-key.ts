import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import { ValidationProblem } from '../infra/http/problem.js';
import type { SecretCipher } from '../secrets/secret-cipher.service.js';
import { givenKey, InvalidSecret, newKey, type KeyTexts, type SigningScheme } from '../signing/signing-key.js';
import { insertSigningKey, type ShownSigningKey } from './signing-key-rows.js';

export interface NewSigningKey {
  scheme: SigningScheme;
  /** Undefined: one is made. */
  secret?: string | undefined;
}

export interface AddedSigningKey {
  key: ShownSigningKey;
  /** Shown this once. Undefined: the caller has it, or receivers need only the public key. */
  secret: string | undefined;
}

/**
 * Adds a key to those of a subscription, in a change of the catalogue that gives the subscription its version.
 * @throws {ValidationProblem} for a secret that is none of the scheme
 */
export async function addSigningKey(
  manager: EntityManager,
  cipher: SecretCipher,
  subscriptionId: string,
  { scheme, secret: given }: NewSigningKey,
): Promise<AddedSigningKey> {
  const texts = given === undefined ? newKey(scheme) : checked(scheme, given);
  const key = await insertSigningKey(manager, cipher, subscriptionId, { id: randomUUID(), scheme, ...texts });
  return { key, secret: given === undefined && scheme === 'v1' ? texts.secret : undefined };
}

function checked(scheme: SigningScheme, secret: string): KeyTexts {
  try {
    return givenKey(scheme, secret);
  } catch (error) {
    if (!(error instanceof InvalidSecret)) throw error;
    throw new ValidationProblem([{ name: 'secret', code: 'invalid-secret', reason: error.message }]);
  }
}
