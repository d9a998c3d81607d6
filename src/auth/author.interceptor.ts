import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { actingFor, type Author } from '../audit/author.js';
import { callerOf, readingMethods, userOf } from './authorization.guard.js';

/** Visible ASCII, as proxies and tracing systems write it. */
const requestIdPattern = /^[!-~]{1,128}$/;
/** An IP address with a port and more; behind a proxy it may be any text. */
const maxAddressLength = 64;

/**
 * The changes of a request are noted in the audit log as its caller's. The answer has the `X-Request-Id` of the entry.
 */
export class AuthorInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    if (readingMethods.has(request.method)) return next.handle();
    const user = userOf(request);
    const author = authorOf(
      request,
      user ? { client: user.name, via: user.via } : { client: callerOf(request).clientId },
    );
    void http.getResponse<FastifyReply>().header('x-request-id', author.requestId);
    return from(actingFor(author, () => lastValueFrom(next.handle(), { defaultValue: undefined })));
  }
}

/** @param who is to be noted as the author of what the request changes */
export function authorOf(request: FastifyRequest, who: Pick<Author, 'client' | 'via'>): Author {
  const asked = request.headers['x-request-id'];
  return {
    ...who,
    // The forwarded one behind a proxy (TRUST_FORWARDED_HEADERS).
    address: (request.ip as string | undefined)?.slice(0, maxAddressLength) ?? null,
    requestId: typeof asked === 'string' && requestIdPattern.test(asked) ? asked : randomUUID(),
  };
}
