import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyRequest } from 'fastify';
import { userAsCaller } from '../audit/author.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { PermissionProblem, ThrottledProblem, UnavailableProblem } from '../infra/http/problem.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Application } from './application.js';
import { Authorization, bearerToken, type Refused, type Requirement } from './authorization.service.js';
import { RefusalLimit } from './refusal-limit.service.js';
import { hasRole, leastRoleFor } from './user-roles.js';
import { UserSessions, type SessionUser } from './user-sessions.js';

/** The rights that the caller of a route needs. */
export const Needs = Reflector.createDecorator<Requirement>();

/**
 * Of routes that store only what their caller may still do by the version of the catalogue that the ledger finds:
 * publications. They need no look at it before.
 */
export const ChecksCallerAsItStores = Reflector.createDecorator<true>();

/** They change nothing. */
export const readingMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

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

/** Depends on the clock: this process may be behind, until it compares its own with Postgres'. */
const liesAhead = 'jwt-immaturesignatureerror';
/**
 * Refusals that depend on the catalogue, or the clock: they are checked again with the latest one before they are
 * answered.
 */
const mayBeOutdated = new Set(['invalid-client-identifier', 'invalid-jwt-signature', 'permission_denied', liesAhead]);

@Injectable()
export class AuthorizationGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly authorization: Authorization,
    private readonly catalogue: Catalogue,
    private readonly limit: RefusalLimit,
    private readonly sessions: UserSessions,
    private readonly ledgerClock: LedgerClock,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const request = context.switchToHttp().getRequest<FastifyRequest>();
    const route = [context.getHandler(), context.getClass()];
    const requirement = this.reflector.getAllAndOverride(Needs, route);
    const isChange =
      !readingMethods.has(request.method) && !this.reflector.getAllAndOverride(ChecksCallerAsItStores, route);
    if (requirement === 'superuser' && this.sessions.concerns(request)) {
      return this.admitUser(request, context.getHandler(), isChange);
    }
    const application = isChange ? this.authorizeChange(request, requirement) : this.authorize(request, requirement);
    return application instanceof Promise
      ? application.then((late) => admit(request, late))
      : admit(request, application);
  }

  /** The user of a session passes where the role is high enough. Sessions count for the admin API alone. */
  private async admitUser(request: FastifyRequest, handler: Function, isChange: boolean): Promise<true> {
    const user = await (isChange ? this.sessions.userWhoChanges(request) : this.sessions.userOf(request));
    const needed = leastRoleFor(handler);
    if (!hasRole(user.role, needed)) {
      throw new PermissionProblem('role-too-low', `Needs the role ${needed}; yours is ${user.role}.`);
    }
    users.set(request, user);
    return admit(request, standInFor(user));
  }

  /**
   * As `authorize`, and by what is committed: another process may just have taken from the application what memory
   * still gives it.
   */
  private async authorizeChange(request: FastifyRequest, requirement: Requirement): Promise<Application> {
    await this.authorize(request, requirement);
    await lookedUp(this.catalogue.refresh());
    const result = this.authorization.identify(request, bearerToken(request)!, requirement);
    if ('problem' in result) throw this.refuse(request, result);
    return result;
  }

  /**
   * The application that sent the request; a promise only where it may have been refused by what is outdated.
   * @throws {PermissionProblem} when it is none, or may not do this
   * @throws {ThrottledProblem} instead, when that was so too often in this minute
   * @throws {UnavailableProblem} when that cannot be looked up, or the token not be checked
   */
  authorize(request: FastifyRequest, requirement: Requirement): Application | Promise<Application> {
    const token = bearerToken(request);
    if (token === undefined) {
      throw this.refuse(request, {
        problem: new PermissionProblem('permission_denied', 'The request has no bearer token.'),
      });
    }
    const result = this.authorization.identify(request, token, requirement);
    if (!('problem' in result)) return result;
    // Counted before the look into the database, so that there are no more of these than refusals.
    const refusal = this.refuse(request, result);
    if (!mayBeOutdated.has(refusal.code)) throw refusal;
    return this.lookAgain(request, token, requirement);
  }

  /**
   * Another process may just have made the application, given it a new secret, or a scope; or the machine was
   * suspended.
   */
  private async lookAgain(request: FastifyRequest, token: string, requirement: Requirement): Promise<Application> {
    await lookedUp(this.catalogue.refresh());
    let result = this.authorization.identify(request, token, requirement);
    if ('problem' in result && result.problem.code === liesAhead) {
      await lookedUp(this.ledgerClock.compare());
      result = this.authorization.identify(request, token, requirement);
    }
    if ('problem' in result) throw result.problem;
    return result;
  }

  /** The answer to a request that is refused, which is counted where the caller can be at fault. */
  private refuse(request: FastifyRequest, { problem, application }: Refused): Refused['problem'] {
    if (!(problem instanceof PermissionProblem)) return problem;
    const waitSeconds = this.limit.add(request, application, problem.code === 'invalid-jwt-signature');
    return waitSeconds === undefined ? problem : new ThrottledProblem(waitSeconds);
  }
}

/** The caller as operations know it. */
const standInFor = ({ id, name }: SessionUser): Application => ({
  id,
  clientId: userAsCaller(name),
  key: undefined,
  scopes: new Set(),
  isSuperuser: true,
  alertEmail: null,
});

/**
 * Of what decides whether a request is allowed.
 * @throws {UnavailableProblem} where the look fails
 */
export async function lookedUp(look: Promise<void>): Promise<void> {
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
