import {
  applyDecorators,
  Injectable,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { from, lastValueFrom, type Observable } from 'rxjs';
import { Postgres } from '../infra/postgres/postgres.js';
import { callerOf } from './authorization.guard.js';

@Injectable()
class CallerTurnInterceptor implements NestInterceptor {
  constructor(private readonly postgres: Postgres) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { clientId } = callerOf(context.switchToHttp().getRequest<FastifyRequest>());
    const answer = () => lastValueFrom(next.handle(), { defaultValue: undefined });
    return from(this.postgres.turns.searches.run(clientId, answer));
  }
}

/**
 * Of operations that may read for seconds: so many of one caller are carried out at once, and the others wait, or are
 * refused. Not for those that change the catalogue, which waits for a turn of its own.
 */
export const ReadsMuch = () => applyDecorators(UseInterceptors(CallerTurnInterceptor));
