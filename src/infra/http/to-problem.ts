import { HttpException } from '@nestjs/common';
import { isCommitInDoubt } from '../postgres/commit-in-doubt.js';
import { isUnavailable } from '../postgres/postgres-errors.js';
import {
  MaybeDoneProblem,
  NotFoundProblem,
  ParseProblem,
  PayloadTooLargeProblem,
  ProblemError,
  UnavailableProblem,
  UnexpectedProblem,
  UnsupportedMediaTypeProblem,
} from './problem.js';

/** The problem that a caller is told for any error that was thrown while its request was served. */
export function toProblem(error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const status = error instanceof HttpException ? error.getStatus() : statusOf(error);
  const detail = (error as Error).message;
  switch (status) {
    case 400:
      return new ParseProblem(detail, error);
    case 404:
      return new NotFoundProblem();
    case 413:
      return new PayloadTooLargeProblem('The body is larger than this server accepts.');
    case 415:
      return new UnsupportedMediaTypeProblem('The Content-Type is not a media type this server reads.');
    default:
      if (status !== undefined && status < 500) return new ParseProblem(detail, error);
      if (isCommitInDoubt(error)) return new MaybeDoneProblem(error);
      if (isUnavailable(error)) return new UnavailableProblem('The database is out of reach.', 1, error);
      return new UnexpectedProblem(error);
  }
}

/**
 * The status that the framework gave an error of the request itself. A caller that goes away in the middle of its body
 * is one of these (400 with ECONNRESET), so this comes before the question whether the database is out of reach.
 */
function statusOf(error: unknown): number | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown };
  // The path cannot be decoded, so it names nothing.
  if (code === 'FST_ERR_BAD_URL') return 404;
  return typeof statusCode === 'number' && statusCode >= 400 ? statusCode : undefined;
}
