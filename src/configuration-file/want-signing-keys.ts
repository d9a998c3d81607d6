import { givenKey, InvalidSecret, type SigningScheme } from '../signing/signing-key.js';
import type { StoredSigningKey } from '../subscriptions/replace-signing-keys.js';
import { mostOld } from '../subscriptions/signing-keys.service.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import type { Planning } from './planning.js';

export interface SigningKeyChanges {
  added: { scheme: SigningScheme; secret: string }[];
  /** Ids of those that are not wanted any more. */
  left: string[];
}

/** How to get from the keys that there are to those that the configuration wants. @param wanted undefined: they stay */
export function wantSigningKeys(
  planning: Planning,
  name: string,
  wanted: ConfiguredSubscription['signingKeys'],
  stored: readonly StoredSigningKey[],
): SigningKeyChanges {
  const changes: SigningKeyChanges = { added: [], left: [] };
  if (!wanted) return changes;
  const current = new Set(stored.filter(({ isRotated }) => !isRotated));
  const keep = (fits: (key: StoredSigningKey) => boolean): boolean => {
    const kept = [...current].find(fits);
    return kept !== undefined && current.delete(kept);
  };
  // Those with a secret first: one without takes any that is left.
  for (const [index, { scheme, secret }] of wanted.entries()) {
    if (secret === undefined) continue;
    const given = readKey(planning, `${name}.signingKeys.${index}.secret`, scheme, secret);
    if (given !== undefined && !keep((key) => key.secret === given)) changes.added.push({ scheme, secret: given });
  }
  for (const [index, { scheme, secret }] of wanted.entries()) {
    if (secret !== undefined || keep((key) => key.scheme === scheme)) continue;
    planning.refuse(
      `${name}.signingKeys.${index}.secret`,
      'required',
      'There is no key of this scheme that could stay.',
    );
  }
  changes.left = [...current].map(({ id }) => id);
  const rotated = stored.filter(({ isRotated }) => isRotated).length;
  if (changes.added.length > 0 && rotated + changes.left.length > mostOld) {
    const reason = `More than ${mostOld} keys that were rotated would still sign: end some first, or wait a day.`;
    planning.refuse(`${name}.signingKeys`, 'too-many-signing-keys', reason);
  }
  return changes;
}

/** With its prefix. */
function readKey(planning: Planning, name: string, scheme: SigningScheme, secret: string): string | undefined {
  try {
    return givenKey(scheme, secret).secret;
  } catch (error) {
    if (!(error instanceof InvalidSecret)) throw error;
    planning.refuse(name, 'invalid-secret', error.message);
    return undefined;
  }
}
