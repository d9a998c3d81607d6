import { HttpException } from '@nestjs/common';
import { isUnavailable } from '../postgres/postgres-errors.js';
import {
  NotFoundProblem,
  ParseProblem,
  PayloadTooLargeProblem,
  ProblemError,
  UnavailableProblem,
  UnexpectedProblem,
  UnsupportedMediaTypeProblem,
} from './problem.js';
import { titleOf } from './problem-classes.js';

/** What the caller is told about anything that was thrown while its request was served. */
export function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  if (isUnavailable(error)) return new UnavailableProblem('The database is out of reach.', 1, error);
  const status = error instanceof HttpException ? error.getStatus() : frameworkStatus(error);
  const detail = (error as Error).message;
  switch (status) {
    case 400:
      return new ParseProblem(detail, error);
    case 404:
    // A path parameter longer than any identifier we gave out: nothing can be there.
    case 414:
      return new NotFoundProblem();
    case 413:
      return new PayloadTooLargeProblem('The body is larger than this server accepts.');
    case 415:
      return new UnsupportedMediaTypeProblem('The Content-Type is not a media type this server reads.');
    case 431:
      return new ProblemError(431, 'headers_too_large', titleOf('HeadersTooLarge'), detail, {
        type: 'HeadersTooLarge',
      });
    default:
      return new UnexpectedProblem(error);
  }
}

/** Fastify's own errors carry the status of the answer, and a code that tells them from other errors that have one. */
function frameworkStatus(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown };
  // The path cannot be decoded, so it names nothing.
  if (code === 'FST_ERR_BAD_URL') return 404;
  return typeof code === 'string' && code.startsWith('FST_') && typeof statusCode === 'number' ? statusCode : undefined;
}
