import jwt from 'jsonwebtoken';
import { createSecretKey } from 'node:crypto';

export interface TokenOptions {
  clientId: string;
  secret: string;
  /** Added to the claims, or replacing them; `undefined` removes one. */
  claims?: Record<string, unknown>;
  algorithm?: jwt.Algorithm;
}

/** A token as clients of the Notificaties API make them. */
export function signToken({ clientId, secret, claims = {}, algorithm = 'HS256' }: TokenOptions): string {
  const payload = {
    iss: clientId,
    client_id: clientId,
    user_id: '',
    user_representation: '',
    iat: Math.floor(Date.now() / 1000),
    ...claims,
  };
  const set = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  // Without `iat` in the payload the library would add its own; told not to, it takes ours away, too.
  // Given a text, the library would try to read a private key in it first, which takes half a millisecond.
  return jwt.sign(set, createSecretKey(Buffer.from(secret)), { algorithm, noTimestamp: !('iat' in set) });
}
