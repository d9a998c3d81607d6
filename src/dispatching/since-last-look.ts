/** A statement that was under way at a look may commit until its time limit ends it: DATABASE_TIMEOUT, 15 s by default. */
const slackMs = 20_000;
/** A row that was committed later than that, or was locked for longer, is found by a look at everything. */
const everythingEveryMs = 5 * 60_000;

/**
 * Rules look each second for what has become overdue, by an index on a time. Only what has become so since the last look can be new; a look at
 * everything also walks over each entry that was there once and is gone. Mostly Postgres has removed those; while a backup or a forgotten
 * transaction keeps a snapshot open it cannot, and such a look takes longer with every second of it (docs/performance.md).
 */
export class SinceLastLook {
  private lookedUpToMs = 0;
  private everythingAt = -Infinity;

  /** @param ledgerNow milliseconds since 1970, by Postgres' clock */
  constructor(private readonly ledgerNow: () => number) {}

  /**
   * @param find finds what has become overdue since that time, by Postgres' clock, and deals with it. What it fails to find is left to
   * the next look
   * @returns what `find` returns
   */
  async look(find: (sinceMs: number, nowMs: number) => Promise<Looked>): Promise<Looked> {
    const nowMs = this.ledgerNow();
    // The clock may have been set back.
    const isEverything = nowMs - this.everythingAt >= everythingEveryMs || nowMs < this.lookedUpToMs;
    const looked = await find(isEverything ? 0 : Math.max(0, this.lookedUpToMs - slackMs), nowMs);
    if (isEverything) this.everythingAt = nowMs;
    // Of what was found, some may be left: a turn that found nobody in a hundred places.
    if (looked.count === 0) this.lookedUpToMs = looked.upToMs;
    return looked;
  }
}

export interface Looked {
  /** Deliveries. */
  count: number;
  /** Milliseconds since 1970, by Postgres' clock: of what was overdue then, nothing else is left. */
  upToMs: number;
}
