import type { CredentialChanges } from '../credentials/credentials-io.js';
import {
  changedParts,
  noParts,
  partsOf,
  toStore,
  type CredentialParts,
  type Credentials,
} from '../credentials/credentials.js';
import { ConflictProblem, ValidationProblem } from '../infra/http/problem.js';
import { UnreadableSecret, type SecretCipher } from '../secrets/secret-cipher.service.js';
import { authPlace, credentialsPlace, type Subscription, type SubscriptionSecret } from './subscription.js';

interface Changes {
  auth?: string | undefined;
  credentials?: CredentialChanges | undefined;
}

/**
 * The columns with the secrets of a subscription, as they are stored. Undefined: that one stays as it is.
 * @param stored the credentials there are, as they are stored
 * @throws {ConflictProblem} when a part is to stay that cannot be decrypted here
 */
export function secretsToStore(
  cipher: SecretCipher,
  id: string,
  { auth, credentials }: Changes,
  stored: string | null = null,
): { auth: string | undefined; credentials: string | null | undefined } {
  const newAuth = credentials?.auth ?? auth;
  const parts = credentials && toStore(changedParts(partsToKeep(cipher, id, credentials, stored), credentials));
  return {
    auth: newAuth === undefined ? undefined : cipher.encrypt(newAuth, authPlace(id)),
    credentials: parts && cipher.encrypt(parts, credentialsPlace(id)),
  };
}

/**
 * A subscription whose credentials make its authorization mostly has no `auth`: with verbatim authorization it would
 * send without any.
 * @param before the `auth` there is, and the kind of authorization; undefined: that cannot be decrypted
 * @param name of the field that is missing
 * @throws {ValidationProblem} when there is no `auth` that could stay
 */
export function requireAuth(
  { auth, credentials }: Changes,
  before: { auth: string; kind: Credentials['kind'] | undefined },
  name: string,
): void {
  if (credentials?.authorization?.kind !== 'verbatim' || (credentials.auth ?? auth) !== undefined) return;
  if (before.auth !== '' || before.kind === 'verbatim') return;
  throw new ValidationProblem([{ name, code: 'required', reason: 'There is no value that could stay.' }]);
}

/**
 * For a call that is to prove the changes.
 * @throws {ConflictProblem} when the call would lack something that stays, as it cannot be decrypted here
 */
export function requireReadable(
  { credentials: before, unreadableSecrets = [] }: Pick<Subscription, 'credentials' | 'unreadableSecrets'>,
  { auth, credentials }: Changes,
): void {
  const kind = credentials?.authorization?.kind ?? before.kind;
  const stays: Record<SubscriptionSecret, boolean> = {
    auth: kind === 'verbatim' && (credentials?.auth ?? auth) === undefined,
    credentials: !credentials || !isWhole(credentials),
    signingKeys: true,
  };
  const missing = unreadableSecrets.filter((secret) => stays[secret]).map((secret) => secretNames[secret]);
  if (missing.length === 0) return;
  throw new ConflictProblem(
    'credentials-unreadable',
    `The callback was not called: ${missing.join(' and ')} cannot be decrypted here. Repeat this once every process has the key of encryption; where that is lost, replace them.`,
  );
}

/** @throws {ConflictProblem} when they cannot be decrypted here */
export function readParts(cipher: SecretCipher, id: string, stored: string | null): CredentialParts {
  if (stored === null) return noParts;
  try {
    return partsOf(cipher.decrypt(stored, credentialsPlace(id)));
  } catch (error) {
    if (error instanceof UnreadableSecret) throw unreadable();
    throw error;
  }
}

/** Undefined: they cannot be decrypted here. */
export function kindOf(cipher: SecretCipher, id: string, stored: string | null): Credentials['kind'] | undefined {
  const parts = stored === null ? null : cipher.decryptIfPossible(stored, credentialsPlace(id));
  return parts === undefined ? undefined : partsOf(parts).authorization.kind;
}

/** Those that are to be replaced as a whole need not be readable. */
function partsToKeep(
  cipher: SecretCipher,
  id: string,
  changes: CredentialChanges,
  stored: string | null,
): CredentialParts {
  return isWhole(changes) ? noParts : readParts(cipher, id, stored);
}

const isWhole = ({ authorization, tls, headers }: CredentialChanges): boolean =>
  authorization !== undefined && tls !== undefined && headers !== undefined;

const secretNames: Record<SubscriptionSecret, string> = {
  auth: 'the `auth` there is',
  credentials: 'the credentials there are (replaced by authorization, tls and headers, each as a whole)',
  signingKeys: 'a signing key',
};

const unreadable = () =>
  new ConflictProblem(
    'credentials-unreadable',
    'The credentials there are cannot be decrypted here: give authorization, tls and headers, each as a whole.',
  );
