import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import { originOf } from './origin.js';
import type { ProblemError } from './problem.js';
import { toProblem } from './to-problem.js';

/** The one place where an error becomes an answer: `application/problem+json` (RFC 9457), logged under its `instance`. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger('Http');

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = toProblem(error);
    const instance = `urn:uuid:${randomUUID()}`;
    this.log(problem, instance, request);
    if (reply.sent) return;
    void reply
      .status(problem.status)
      .headers(problem.extra.headers ?? {})
      .header('content-type', 'application/problem+json')
      // Bytes, because Fastify adds a charset to texts, and this media type has none.
      .send(Buffer.from(problemText(problem, instance, originOf(request))));
  }

  private log(problem: ProblemError, instance: string, request: FastifyRequest): void {
    const { status, code, detail, extra } = problem;
    const seen = { instance, status, code, method: request.method, path: request.url.split('?', 1)[0]!.slice(0, 200) };
    if (status >= 500) this.logger.error({ event: 'request.failed', ...seen, error: extra.cause ?? problem });
    else this.logger.log({ event: 'request.refused', ...seen, detail, invalidParams: extra.invalidParams });
  }
}

/** The keys in the order of the standard's Fout and ValidatieFout. */
export function problemText(problem: ProblemError, instance: string, origin: string): string {
  const { status, code, title, detail, extra } = problem;
  return JSON.stringify({
    type: `${origin}/ref/fouten/${extra.type}/`,
    code,
    title,
    status,
    detail,
    instance,
    invalidParams: extra.invalidParams,
  });
}
