import { createHash, createHmac, randomBytes, timingSafeEqual, type KeyObject } from 'node:crypto';

/** The secret of a session or of a ticket: 256 random bits. The ledger has only its hash, which leads to no token. */
export const newToken = (): string => randomBytes(32).toString('base64url');

/** Whether a text could be one, so that nobody asks the ledger about anything else. */
export const isToken = (text: unknown): text is string => typeof text === 'string' && /^[\w-]{43}$/.test(text);

export const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url');

/**
 * Binds a token to the secret that it was given for. The secret cannot be guessed from it by whoever has not got the
 * token.
 */
export const signatureOf = (token: string, key: KeyObject): string =>
  createHmac('sha256', key).update(token).digest('base64url');

export const isSignedBy = (signature: string, token: string, key: KeyObject): boolean =>
  areEqual(signature, signatureOf(token, key));

/** Whether a text is the secret of a key, without telling by the time it takes how much of it is. */
export const isSecretOf = (text: string, key: KeyObject): boolean =>
  areEqual(hashOf(text), createHash('sha256').update(key.export()).digest('base64url'));

/** Both are as long as any other of their kind. */
const areEqual = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
