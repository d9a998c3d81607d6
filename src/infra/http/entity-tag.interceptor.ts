import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { tap, type Observable } from 'rxjs';
import { entityTagOf } from './if-match.js';

/** Gives an answer the `ETag` of what it shows, unless its handler has set one. */
export class EntityTagInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler<object>): Observable<object> {
    const reply = context.switchToHttp().getResponse<FastifyReply>();
    return next.handle().pipe(
      tap((shown) => {
        if (!reply.hasHeader('etag')) void reply.header('etag', entityTagOf(shown));
      }),
    );
  }
}
