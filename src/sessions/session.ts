import type { SessionUser } from '../auth/user-sessions.js';

/** A user's time in the console, in one browser. */
export interface Session extends SessionUser {
  /** Of the token in its cookie, by the secret with which the user signed in; null: there was none. */
  readonly signature: string | null;
  /** Milliseconds since 1970: unless it is used before. */
  readonly endsAt: number;
  /** However much it is used. */
  readonly expiresAt: number;
}

/** `oidc:` and `client:` keep the two kinds of users apart, whatever a provider calls its own. */
export const idOfSubject = (issuer: string, subject: string): string => `oidc:${issuer}#${subject}`;
export const idOfClient = (clientId: string): string => `client:${clientId}`;
