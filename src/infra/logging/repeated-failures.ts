import type { Logger } from '@nestjs/common';

/** A series of failures that goes on is mentioned again after this time. */
const remindMs = 60_000;

interface Lines {
  failed: { event: string };
  /** Undefined: somebody else says so. */
  worksAgain?: { event: string };
}

/**
 * Reports the failures of something that is tried again and again: the first of a series, one a minute while it lasts,
 * and its end; the others at level debug. A task that runs every second would otherwise fill the log while Postgres is
 * down.
 */
export class RepeatedFailures {
  private failures = 0;
  private reportedAt = 0;

  /** @param now milliseconds, of a clock that runs steadily */
  constructor(
    private readonly logger: Pick<Logger, 'debug' | 'log' | 'warn'>,
    private readonly lines: Lines,
    private readonly now = () => performance.now(),
  ) {}

  failed(error: unknown, details: object = {}): void {
    this.failures++;
    const line = { ...this.lines.failed, failures: this.failures, ...details, error };
    if (this.failures > 1 && this.now() - this.reportedAt < remindMs) return this.logger.debug(line);
    this.reportedAt = this.now();
    this.logger.warn(line);
  }

  worked(): void {
    const { failures } = this;
    this.failures = 0;
    if (failures > 0 && this.lines.worksAgain) this.logger.log({ ...this.lines.worksAgain, failures });
  }

  /** Notes how this try ends. Never rejects. */
  async note(trying: Promise<unknown>): Promise<void> {
    try {
      await trying;
    } catch (error) {
      return this.failed(error);
    }
    this.worked();
  }
}
