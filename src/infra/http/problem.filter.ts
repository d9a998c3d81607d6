import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import type { Dialect } from './dialect.js';
import { refusedCounted } from './http.counters.js';
import { baseUrlOf } from './origin.js';
import { UnavailableProblem, wholeInput, type InvalidParam, type ProblemError } from './problem.js';
import { LogSamples } from '../logging/log-samples.js';
import { toProblem } from './to-problem.js';
import { readOn } from './unread-bodies.js';

const maxLoggedPath = 200;

declare module 'fastify' {
  interface FastifyInstance {
    /** The one filter of this server. */
    problems: ProblemFilter;
  }
}

/**
 * The one place where an error becomes an answer: `application/problem+json` (RFC 9457), logged under its `instance`. A
 * refusal is counted, and the first of each code in a minute is logged, the others at debug only: anyone can cause
 * refusals, and could fill a disk with them, or bury failures. A server has one, `problems`: with two there would be
 * twice as many lines.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger('Http');
  private readonly samples = new LogSamples(60_000, () => performance.now());

  constructor(private readonly dialect: Dialect) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    this.answer(error, http.getRequest<FastifyRequest>(), http.getResponse<FastifyReply>());
  }

  answer(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const problem = toProblem(error);
    const path = request.url.split('?', 1)[0]!.slice(0, maxLoggedPath);
    const text = this.write(problem, baseUrlOf(request), { method: request.method, path, address: request.ip });
    if (reply.sent) return;
    readOn(request, reply);
    void reply
      .status(problem.status)
      .headers(problem.extra.headers ?? {})
      // A 404 or 405 could be kept by a cache otherwise (RFC 9110 §15.1), with the host that this caller named.
      .header('cache-control', 'no-store')
      .header('content-type', 'application/problem+json')
      // Bytes, because Fastify adds a charset to texts, and this media type has none.
      .send(Buffer.from(text));
  }

  /**
   * The body of the answer, after the problem was logged and counted.
   * @param seen of the request, for the log
   */
  write(
    problem: ProblemError,
    origin: string,
    seen: { method?: string; path?: string; address?: string | undefined },
  ): string {
    const { type, status, code, detail, extra } = problem;
    const instance = `urn:uuid:${randomUUID()}`;
    const invalidParams = extra.invalidParams?.map((param) => this.named(param));
    const logged = { instance, status, code, ...seen };
    if (isRefusal(problem)) {
      // `refused`: how many there were of this kind since the line before. One code has several reasons for a 503, all
      // of them fixed texts.
      const refused = this.samples.pick(status < 500 ? code : detail);
      const line = { event: 'request.refused', ...logged, detail, invalidParams, refused };
      if (refused === undefined) this.logger.debug(line);
      else if (status < 500) this.logger.log(line);
      else this.logger.warn(line);
      refusedCounted.inc({ status, code });
    } else this.logger.error({ event: 'request.failed', ...logged, error: extra.cause ?? problem });
    return JSON.stringify({
      type: `${origin}${this.dialect.problemPage(type)}`,
      code,
      title: this.dialect.problemTitle(type),
      status,
      detail,
      instance,
      invalidParams,
    });
  }

  private named(param: InvalidParam): InvalidParam {
    return param.name === wholeInput ? { ...param, name: this.dialect.wholeInput } : param;
  }
}

/**
 * Nothing failed: the caller is wrong, or a limit is reached, or this process is stopping. A failure on this side has
 * its cause.
 */
const isRefusal = (problem: ProblemError): boolean =>
  problem.status < 500 || (problem instanceof UnavailableProblem && problem.extra.cause === undefined);
