import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { PermissionProblem, ThrottledProblem, UnavailableProblem } from '../infra/http/problem.js';
import { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import type { TokenRefusal } from './check-claims.js';
import type { Scope } from './scopes.js';
import { Refusal, TokenVerifier } from './token-verifier.service.js';

/** Any of the scopes is enough; a superuser always passes. */
export type Requirement = readonly Scope[] | 'superuser';

export interface Refused {
  problem: PermissionProblem | ThrottledProblem | UnavailableProblem;
  application?: Application | undefined;
}

const explanations: Record<TokenRefusal, string> = {
  'jwt-decode-error':
    'The token cannot be read: it is not a JSON Web Token (three parts in base64url, without `=`, RFC 7515), or its header has `crit`.',
  'missing-client-identifier': 'The token has no client_id.',
  'invalid-client-identifier': 'No application has the client_id of the token, or that one has no secret.',
  'jwt-invalidalgorithmerror': 'The token must be signed with HS256.',
  'invalid-jwt-signature': 'The signature of the token is not right.',
  'jwt-immaturesignatureerror': 'The token is not valid yet: its nbf lies ahead, or its iat more than a minute.',
  'jwt-expiredsignatureerror': 'The token is no longer valid: its exp has passed.',
  'jwt-missing-iat-claim': 'The token does not say when it was issued (iat).',
  'jwt-invalidissuedaterror': 'The iat of the token is not a time.',
  'jwt-expired': 'The token was issued too long ago.',
};

/** Which application sent a request, and whether it may do what it asks for: by what this process has in memory. */
@Injectable()
export class Authorization {
  constructor(
    private readonly tokens: TokenVerifier,
    private readonly applications: ApplicationDirectory,
  ) {}

  identify(request: FastifyRequest, token: string, requirement: Requirement): Application | Refused {
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

  /**
   * Why an application that was authorized may no longer do this; undefined: it may. Costs nothing as long as the
   * application has not been changed. Of a user in a session it knows nothing (docs/decisions/0083).
   */
  refusalNow(
    request: FastifyRequest,
    application: Application,
    requirement: Requirement,
  ): Refused['problem'] | undefined {
    const result = this.identifyNow(request, application, requirement);
    return 'problem' in result ? result.problem : undefined;
  }

  /** The same application as it is now, or why it may no longer do this. */
  identifyNow(request: FastifyRequest, application: Application, requirement: Requirement): Application | Refused {
    // A change makes a new object.
    if (this.applications.find(application.clientId) === application) return application;
    const token = bearerToken(request);
    return token === undefined ? application : this.identify(request, token, requirement); // without one, a user's
  }
}

function refusedFor({ code, application, waitSeconds = 1 }: Refusal): Refused {
  if (code === 'throttled') return { problem: new ThrottledProblem(waitSeconds), application };
  if (code === 'secret-unreadable') return { problem: unreadableSecret(), application };
  return { problem: new PermissionProblem(code, explanations[code]), application };
}

/** Trouble on our side, which another process may not have: a publisher that is told 403 gives up its notification. */
export const unreadableSecret = (): UnavailableProblem => {
  const detail =
    'The process that answers cannot decrypt the secret of the application, and so cannot check what was made with it.';
  return new UnavailableProblem(detail, 10, undefined, 'secret-unreadable');
};

/** The scheme in any case (RFC 9110 §11.1). Node has removed the space at the end of the header. */
export function bearerToken({ headers: { authorization } }: FastifyRequest): string | undefined {
  return authorization === undefined ? undefined : /^bearer +(.+)$/i.exec(authorization)?.[1];
}
