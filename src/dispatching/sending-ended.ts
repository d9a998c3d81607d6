import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { anyUndecided, endSending, reportMs, sendingEnded } from '../ledger/end-sending.js';
import { SinceLastLook } from '../ledger/since-last-look.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { OperationalEvents } from '../operational-events/operational-events.service.js';
import { inBatches } from './in-batches.js';

/**
 * From one statement that came through to the next, which is sent each second. The time of a claim has 15 s for the
 * report of a call that took as long as it may: with less than this lost of it, the report was in time all the same.
 */
const mostBetweenMs = 5000;

/**
 * Ends deliveries at most once whose process died after it had claimed them, or did not report in time: they become
 * unknown, and are not sent again.
 *
 * The time of a claim counts only while the statement that ends it has come through, again and again, for as long as a
 * report may take. Heartbeats are written to another table, and go on while nobody can write to that of deliveries: a
 * migration has locked it, say. When the lock is gone, this statement and the reports are let in together. A process
 * that has just started cannot know: it may be the one that has migrated. The statement does not ask for the table of
 * attempts, to which a report writes as well: while only that one is locked, reports wait and the time counts.
 */
export class SendingEnded {
  readonly name = 'sending-ended';
  private readonly looks: SinceLastLook;
  /** When the statement last came through, and since when it has done so without a gap. */
  private cameThroughAt = -Infinity;
  private throughSince = Infinity;

  constructor(
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
    ledgerClock: LedgerClock,
    private readonly clock: Clock,
  ) {
    this.looks = new SinceLastLook(ledgerClock);
  }

  /** @returns how many it ended */
  async run(stopping: AbortSignal): Promise<number> {
    const { count } = await this.looks.look(async (sinceMs, nowMs) => {
      const could = this.couldReport;
      // Asked for before: afterwards it might be time for what was left.
      const areLeft = await anyUndecided(this.postgres, sinceMs, could);
      const found = await inBatches((limit) => this.end(sinceMs, limit), stopping);
      const isAll = found === 0 && !areLeft && this.couldReport === could;
      return { count: found, upToMs: isAll ? nowMs : undefined };
    });
    return count;
  }

  /** Whether the time of some is over, and it cannot tell yet whether their processes could have reported. */
  anyUndecided(): Promise<boolean> {
    return anyUndecided(this.postgres, 0, this.couldReport);
  }

  private get couldReport(): boolean {
    const now = this.clock.now();
    return now - this.cameThroughAt <= mostBetweenMs && now - this.throughSince >= reportMs(this.postgres);
  }

  private async end(sinceMs: number, limit: number): Promise<number> {
    const ended = await endSending(this.postgres, sinceMs, limit, this.couldReport);
    const now = this.clock.now();
    if (now - this.cameThroughAt > mostBetweenMs) this.throughSince = now;
    this.cameThroughAt = now;
    this.events.reportDead(ended.map((key) => ({ ...key, state: 'unknown', reason: sendingEnded })));
    return ended.length;
  }
}
