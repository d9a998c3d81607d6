import type { FastifyRequest } from 'fastify';
import type { UserRole } from './user-roles.js';

/**
 * How a user signed in: at the provider of OpenID Connect, with a superuser's secret, or by a ticket that was made with
 * one.
 */
export type WayIn = 'oidc' | 'password' | 'ticket';

/** Somebody who is signed in to the console. */
export interface SessionUser {
  /** The same in each of the user's sessions. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  readonly role: UserRole;
  readonly via: WayIn;
}

/** The sessions of the console, as the guard of the admin API needs them (src/sessions has them). */
export abstract class UserSessions {
  /** Whether a request without a token comes from the console, signed in or not. */
  abstract concerns(request: FastifyRequest): boolean;

  /**
   * The user whose session the request belongs to.
   * @throws {NotSignedInProblem} when there is none, or no longer
   * @throws {PermissionProblem} when it would change something and is not known to come from a page of the console
   * @throws {ThrottledProblem} when too many of this address were refused in this minute
   */
  abstract userOf(request: FastifyRequest): Promise<SessionUser>;

  /**
   * The same of a request that changes something for others, by all that is committed: another process may just have
   * taken away the secret that the session began with (docs/decisions/0083).
   * @throws {UnavailableProblem} where that cannot be looked up
   */
  abstract userWhoChanges(request: FastifyRequest): Promise<SessionUser>;

  /**
   * Calls `ended` within seconds of the end of the session that the request belongs to; never where it belongs to none.
   * @returns to be called when nobody needs to know any more
   */
  abstract watch(request: FastifyRequest, ended: () => void): () => void;
}
