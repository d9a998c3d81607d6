import type { Logger } from '@nestjs/common';
import type { Clock } from '../infra/clock.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';

/**
 * Retention counts in days, and machines agree to the second. Not less: this process' clock stands still while its
 * machine is suspended. A jump by less may take an `Idempotency-Key` along that has no more than that left.
 */
const mostApartMs = 24 * 3_600_000;

/** A minute less than an hour: a task that runs once an hour says it each time. */
const warnEveryMs = 59 * 60_000;

/**
 * For a task that drops or erases what is old. By a clock of Postgres that jumped ahead everything is, and nothing of
 * it can be brought back: so it rests as long as the clock of this process says something else, which does not follow a
 * clock that is set while it runs.
 * @param task its name, for the log
 */
export const whenClocksAgree = (
  task: string,
  run: (stopping: AbortSignal) => Promise<unknown>,
  { ledgerClock, clock, logger }: { ledgerClock: LedgerClock; clock: Clock; logger: Pick<Logger, 'warn'> },
) => {
  let warnedAt = -Infinity;
  return async (stopping: AbortSignal): Promise<void> => {
    await ledgerClock.compare();
    const [ledgerAt, processAt] = [ledgerClock.now(), clock.now()];
    if (Math.abs(ledgerAt - processAt) <= mostApartMs) {
      await run(stopping);
      return;
    }
    if (processAt - warnedAt < warnEveryMs) return;
    warnedAt = processAt;
    const [ofPostgres, ofProcess] = [ledgerAt, processAt].map((at) => new Date(at).toISOString());
    logger.warn({ event: 'retention.clocks-apart', task, ofPostgres, ofProcess });
  };
};
