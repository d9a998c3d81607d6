import type { Logger } from '@nestjs/common';
import { ProblemError, UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';

const retryAfterSeconds = 2;

/** The answer to a publisher when the ledger did not store a notification; the cause goes to the log. */
export function explainNotStored(error: unknown, notificationId: string, logger: Logger): ProblemError {
  if (error instanceof ProblemError) return error;
  if (isDataError(error)) {
    logger.warn({ event: 'notification.refused', notificationId, error });
    const reason = 'The notification holds a value that cannot be stored.';
    return new ValidationProblem([{ name: wholeInput, code: 'invalid', reason }]);
  }
  // A missing partition is among these: the next one is made, or the clock is right, before the publisher is back.
  logger.error({ event: 'notification.not-committed', notificationId, error });
  return new UnavailableProblem('The notification could not be stored. Publish it again.', retryAfterSeconds, error);
}
