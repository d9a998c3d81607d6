import { createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { ZgwAuthorization } from './credentials.js';

/**
 * Receivers refuse a token by its age in hours, and some whose `iat` is not exactly now or before: a few seconds serve
 * both.
 */
const keptMs = 10_000;

/** Tokens as the clients of the Notificaties API make them, each for the deliveries of some seconds. */
export class ZgwTokens {
  // Changed credentials are another object.
  private readonly tokens = new WeakMap<ZgwAuthorization, { value: string; madeAt: number }>();

  constructor(private readonly ledgerClock: LedgerClock) {}

  /** The value of the `Authorization` header. */
  authorizationFor(credentials: ZgwAuthorization): string {
    const now = this.ledgerClock.now();
    const known = this.tokens.get(credentials);
    if (known && now - known.madeAt < keptMs && now >= known.madeAt) return known.value;
    const { clientId, secret, userId, userRepresentation } = credentials;
    const claims = {
      iss: clientId,
      iat: Math.floor(now / 1000),
      client_id: clientId,
      user_id: userId,
      user_representation: userRepresentation,
    };
    // As bytes: a text that looks like a PEM key is taken for one, and refused.
    const value = `Bearer ${jwt.sign(claims, createSecretKey(Buffer.from(secret)), { algorithm: 'HS256' })}`;
    this.tokens.set(credentials, { value, madeAt: now });
    return value;
  }
}
