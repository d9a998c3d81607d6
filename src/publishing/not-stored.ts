import type { Logger } from '@nestjs/common';
import { BatcherRefusal } from '../infra/batcher.js';
import { ProblemError, UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { isDataError, isNotConnected, isRefused } from '../infra/postgres/postgres-errors.js';
import { DeadlinePassed } from '../ledger/may-write.js';
import type { TraceFields } from '../telemetry/tracing.js';
import { publicationsRefused } from './publishing.counters.js';

const retryAfterSeconds = 2;

/** `failed`: the ledger answered with an error, or the connection was lost. The others as in `BatcherRefusal`. */
type Reason = BatcherRefusal['reason'] | 'failed';

interface NotStored {
  /** The notification, for the log. */
  which: ({ notificationId: string } & Partial<TraceFields>) | { key: string };
  /** Then the request may have been carried out before, whatever became of this one. */
  hasKey: boolean;
}

/** The answer to a publisher when the ledger did not store a notification; the cause goes to the log. */
export function explainNotStored(error: unknown, { which, hasKey }: NotStored, logger: Logger): ProblemError {
  if (error instanceof ProblemError) return error;
  if (isDataError(error)) {
    logger.warn({ event: 'notification.refused', ...which, error });
    const reason = 'The notification holds a value that cannot be stored.';
    return new ValidationProblem([{ name: wholeInput, code: 'invalid', reason }]);
  }
  // A missing partition is among these: the next one is made, or the clock is right, before the publisher is back.
  const reason = reasonOf(error);
  publicationsRefused.inc({ reason });
  // Of thousands that are refused together, the error itself is told once by each answer (`request.failed`).
  logger.error({ event: 'notification.not-committed', ...which, reason });
  return new UnavailableProblem(
    !hasKey && isCertain(error, reason)
      ? 'The notification was not stored. Publish it again.'
      : 'The notification may not have been stored. Publish it again, under its Idempotency-Key if it has one.',
    retryAfterSeconds,
    error,
  );
}

function reasonOf(error: unknown): Reason {
  if (error instanceof DeadlinePassed) return 'late';
  return error instanceof BatcherRefusal ? error.reason : 'failed';
}

/** Whether it is known that nothing was committed. Otherwise a commit may have gone through whose answer did not. */
function isCertain(error: unknown, reason: Reason): boolean {
  return reason === 'full' || reason === 'late' || isRefused(error) || isNotConnected(error);
}
