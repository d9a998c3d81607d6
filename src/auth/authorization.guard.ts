import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { PermissionProblem, ThrottledProblem, UnavailableProblem } from '../infra/http/problem.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import type { Application } from './application.js';
import type { TokenRefusal } from './check-claims.js';
import { RefusalLimit } from './refusal-limit.service.js';
import type { Scope } from './scopes.js';
import { Refusal, TokenVerifier } from './token-verifier.service.js';
import { hasRole, leastRoleFor } from './user-roles.js';
import { UserSessions, type SessionUser } from './user-sessions.js';

/** Any of the scopes is enough; a superuser always passes. */
export const Requirement = Reflector.createDecorator<readonly Scope[] | 'superuser'>();

const callers = new WeakMap<object, Application>();
const users = new WeakMap<object, SessionUser>();

/** @throws {Error} where no guard has identified the caller: a route without a requirement */
export function callerOf(request: FastifyRequest): Application {
  const application = callers.get(request);
  if (!application) throw new Error(`Nothing guards ${request.method} ${request.url}`);
  return application;
}

/** The user who sent the request in a session; undefined: an application did. */
export const userOf = (request: FastifyRequest): SessionUser | undefined => users.get(request);

const explanations: Record<TokenRefusal, string> = {
  'jwt-decode-error': 'The token cannot be read: it is not a JSON Web Token, or its header has `crit`.',
  'missing-client-identifier': 'The token has no client_id.',
  'invalid-client-identifier': 'No application has the client_id of the token.',
  'jwt-invalidalgorithmerror': 'The token must be signed with HS256.',
  'invalid-jwt-signature': 'The signature of the token is not right.',
  'jwt-immaturesignatureerror': 'The token is not valid yet: its nbf lies ahead, or its iat more than a minute.',
  'jwt-expiredsignatureerror': 'The token is no longer valid: its exp has passed.',
  'jwt-missing-iat-claim': 'The token does not say when it was issued (iat).',
  'jwt-invalidissuedaterror': 'The iat of the token is not a time.',
  'jwt-expired': 'The token was issued too long ago.',
};

/** Depends on the clock: this process may be behind, until it compares its own with Postgres'. */
const liesAhead = 'jwt-immaturesignatureerror';
/** Refusals that depend on the catalogue, or the clock: they are checked again with the latest one before they are answered. */
const mayBeOutdated = new Set(['invalid-client-identifier', 'invalid-jwt-signature', 'permission_denied', liesAhead]);

interface Refused {
  problem: PermissionProblem | ThrottledProblem;
  application?: Application | undefined;
}

@Injectable()
export class AuthorizationGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly tokens: TokenVerifier,
    private readonly catalogue: Catalogue,
    private readonly limit: RefusalLimit,
    private readonly sessions: UserSessions,
    private readonly heartbeat: Heartbeat,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const requirement = this.reflector.getAllAndOverride(Requirement, [context.getHandler(), context.getClass()]);
    if (requirement === 'superuser' && this.sessions.concerns(request)) {
      return this.admitUser(request, context.getHandler());
    }
    const application = this.authorize(request, requirement);
    return application instanceof Promise
      ? application.then((late) => admit(request, late))
      : admit(request, application);
  }

  /** The user of a session passes where the role is high enough. Sessions count for the admin API alone. */
  private async admitUser(request: FastifyRequest, handler: Function): Promise<true> {
    const user = await this.sessions.userOf(request);
    const needed = leastRoleFor(handler);
    if (!hasRole(user.role, needed)) {
      throw new PermissionProblem('role-too-low', `Needs the role ${needed}; yours is ${user.role}.`);
    }
    users.set(request, user);
    return admit(request, standInFor(user));
  }

  /**
   * The application that sent the request; a promise only where it may have been refused by what is outdated.
   * @throws {PermissionProblem} when it is none, or may not do this
   * @throws {ThrottledProblem} instead, when that was so too often in this minute
   * @throws {UnavailableProblem} when that cannot be looked up
   */
  authorize(request: FastifyRequest, requirement: readonly Scope[] | 'superuser'): Application | Promise<Application> {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) {
      throw this.refuse(request, {
        problem: new PermissionProblem('permission_denied', 'The request has no bearer token.'),
      });
    }
    const result = this.identify(request, token, requirement);
    if (!('problem' in result)) return result;
    // Counted before the look into the database, so that there are no more of these than refusals.
    const refusal = this.refuse(request, result);
    if (!mayBeOutdated.has(refusal.code)) throw refusal;
    return this.lookAgain(request, token, requirement);
  }

  /** Another process may just have made the application, given it a new secret, or a scope; or the machine was suspended. */
  private async lookAgain(
    request: FastifyRequest,
    token: string,
    requirement: readonly Scope[] | 'superuser',
  ): Promise<Application> {
    await lookedUp(this.catalogue.refresh());
    let result = this.identify(request, token, requirement);
    if ('problem' in result && result.problem.code === liesAhead) {
      await lookedUp(this.heartbeat.compareClocks());
      result = this.identify(request, token, requirement);
    }
    if ('problem' in result) throw result.problem;
    return result;
  }

  private identify(
    request: FastifyRequest,
    token: string,
    requirement: readonly Scope[] | 'superuser',
  ): Application | Refused {
    const result = this.tokens.verify(token, request);
    if (result instanceof Refusal) return refusedFor(result);
    if (result.isSuperuser) return result;
    const denied = (detail: string): Refused => ({
      problem: new PermissionProblem('permission_denied', detail),
      application: result,
    });
    if (requirement === 'superuser') return denied('Only for a superuser.');
    if (requirement.some((scope) => result.scopes.has(scope))) return result;
    return denied(`Needs the scope ${requirement.join(' or ')}.`);
  }

  /** The answer to a request that is refused, which is counted. */
  private refuse(request: FastifyRequest, { problem, application }: Refused): PermissionProblem | ThrottledProblem {
    if (problem instanceof ThrottledProblem) return problem;
    const waitSeconds = this.limit.add(request, application, problem.code === 'invalid-jwt-signature');
    return waitSeconds === undefined ? problem : new ThrottledProblem(waitSeconds);
  }
}

const refusedFor = ({ code, application, waitSeconds = 1 }: Refusal): Refused =>
  code === 'throttled'
    ? { problem: new ThrottledProblem(waitSeconds), application }
    : { problem: new PermissionProblem(code, explanations[code]), application };

/** The caller as operations know it. The client id is none that a publisher or subscriber has by accident. */
const standInFor = ({ id, name }: SessionUser): Application => ({
  id,
  clientId: `user:${name}`,
  label: name,
  key: undefined,
  scopes: new Set(),
  isSuperuser: true,
  alertEmail: null,
});

/** @throws {UnavailableProblem} where the look fails */
async function lookedUp(look: Promise<void>): Promise<void> {
  try {
    await look;
  } catch (error) {
    throw new UnavailableProblem('Whether this is allowed cannot be looked up now.', 1, error);
  }
}

function admit(request: FastifyRequest, application: Application): true {
  callers.set(request, application);
  return true;
}

/** The scheme in any case (RFC 9110 §11.1). Node has removed the space at the end of the header. */
function bearerToken(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^bearer +(.+)$/i.exec(header)?.[1];
}
