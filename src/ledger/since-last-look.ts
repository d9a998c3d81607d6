import type { LedgerClock } from '../liveness/ledger-clock.service.js';

/**
 * A statement that was under way at a look may commit until its time limit ends it: DATABASE_TIMEOUT, 15 s by default.
 */
const slackMs = 20_000;

/**
 * The dispatcher looks each second, or more often, for what has become due or overdue, by an index on a time. Only what
 * has become so since the last look can be new; a look at everything also walks over each entry that was there once and
 * is gone. Mostly Postgres has removed those; while a backup or a forgotten transaction keeps a snapshot open it
 * cannot, and such a look takes longer with every second of it (docs/performance.md).
 */
export class SinceLastLook {
  private lookedUpToMs = 0;
  private everythingAt = -Infinity;

  /**
   * @param everythingEveryMs from one look at everything to the next, which finds a row that was committed later than
   *   `slackMs`, or was locked for longer. Also where it failed: behind a snapshot of a day it may exceed its time
   *   limit each time, and no look that is quick would come to its turn
   */
  constructor(
    private readonly ledgerClock: LedgerClock,
    private readonly everythingEveryMs = 5 * 60_000,
  ) {}

  /**
   * @param find finds what has become due or overdue since that time, by Postgres' clock, and deals with it. Where it
   *   fails, the next look finds it, or the next one at everything
   * @returns the result of `find`
   */
  async look(find: (sinceMs: number, nowMs: number) => Promise<Looked>): Promise<Looked> {
    const nowMs = this.ledgerClock.now();
    // The clock may have been set back.
    const isEverything = nowMs - this.everythingAt >= this.everythingEveryMs || nowMs < this.lookedUpToMs;
    if (isEverything) this.everythingAt = nowMs;
    const looked = await find(isEverything ? 0 : Math.max(0, this.lookedUpToMs - slackMs), nowMs);
    const { upToMs } = looked;
    // One that ended early has begun a little before where the last one has ended.
    if (upToMs !== undefined) this.lookedUpToMs = isEverything ? upToMs : Math.max(this.lookedUpToMs, upToMs);
    return looked;
  }
}

export interface Looked {
  /** Of deliveries, or of whatever it looks for. */
  count: number;
  /**
   * Milliseconds since 1970, by Postgres' clock: of what was due or overdue then, nothing else is left. Undefined: some
   * may be, and the next look begins where this one has begun.
   */
  upToMs: number | undefined;
}
