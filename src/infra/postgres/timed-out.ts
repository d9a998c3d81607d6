import { Logger } from '@nestjs/common';
import { AbstractLogger, type QueryRunner } from 'typeorm';
import { exceededLimit, isLockTimeout } from './postgres-errors.js';
import { timedOutCounted } from './postgres.counters.js';
import type { TimeLimits } from './time-limits.js';

const logger = new Logger('Postgres');
const longestText = 200;

/** Logs and counts an error of a statement that exceeded one of the limits; ignores any other error. */
export function reportTimedOut(error: unknown, limits: TimeLimits, statement: string, text?: string): void {
  const limit = exceededLimit(error);
  if (!limit) return;
  timedOutCounted.inc({ statement, limit });
  const event = 'postgres.statement-timed-out';
  logger.warn({ event, statement, limit, limitMs: limits[limit], text: text?.slice(0, longestText) });
}

/**
 * Among the `data` of a query runner: its statements have a limit of their own for a lock, and are tried again by
 * somebody who tells of it.
 */
export const triedAgain = { isTriedAgain: true };

/** The same for TypeORM's statements, which have no names. Their texts hold no values, those are parameters. */
export class TimedOutLogger extends AbstractLogger {
  constructor(private readonly limits: TimeLimits) {
    super(false);
  }

  override logQueryError(error: string | Error, text: string, _values?: unknown[], queryRunner?: QueryRunner): void {
    if (queryRunner?.data.isTriedAgain === true && isLockTimeout(error)) return;
    reportTimedOut(error, this.limits, 'other', text);
  }

  protected writeLog(): void {
    // Of all that TypeORM tells, nothing else is of interest: its errors reach their callers.
  }
}
