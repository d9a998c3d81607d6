import type { Logger } from '@nestjs/common';

/** A task that goes on failing is mentioned again after this time. */
const remindMs = 60_000;

/**
 * Reports the failures of a task that is repeated: the first of a series, one a minute while it lasts, and its end. A
 * task that runs every second would otherwise fill the log while Postgres is down.
 */
export class TaskFailures {
  private failures = 0;
  private reportedAt = 0;

  /** @param now milliseconds, of a clock that runs steadily */
  constructor(
    private readonly task: string,
    private readonly logger: Pick<Logger, 'log' | 'warn'>,
    private readonly now: () => number,
  ) {}

  /** Nothing is lost by it: all state is in the ledger, and the next round starts from there. */
  failed(error: unknown): void {
    this.failures++;
    if (this.failures > 1 && this.now() - this.reportedAt < remindMs) return;
    this.reportedAt = this.now();
    this.logger.warn({ event: 'dispatcher.task-failed', task: this.task, failures: this.failures, error });
  }

  worked(): void {
    if (this.failures > 0)
      this.logger.log({ event: 'dispatcher.task-works-again', task: this.task, failures: this.failures });
    this.failures = 0;
  }
}
