import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { SharedRuns } from '../infra/shared-runs.js';
import { narrowOffset } from './narrow-offset.js';

/**
 * A caller can make this process ask, by a time that lies ahead: its requests share a question, and this is as often as
 * they get one.
 */
const atMostEveryMs = 250;

/** Postgres' clock, in a statement that answers with it. */
export const nowMs = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms';

const readClock = statement('ledger-clock', `SELECT ${nowMs}`);

/** The time by Postgres' clock, as this process knows it. */
export class LedgerClock {
  private offsetMs = 0;
  private askedAt = -Infinity;
  private waiting: Promise<void> | undefined;
  private readonly questions = new SharedRuns(() => this.ask());

  constructor(
    private readonly postgres: Pick<Postgres, 'query'>,
    private readonly clock: Clock,
  ) {}

  /** Milliseconds since 1970, with fractions. */
  now(): number {
    return this.clock.now() + this.offsetMs;
  }

  /** @param sentAt by the clock of this process: when Postgres was asked. The answer has come just now. */
  heard(ledgerAt: number, sentAt: number): void {
    this.offsetMs = narrowOffset(this.offsetMs, sentAt, ledgerAt, this.clock.now());
  }

  /**
   * Resolves after a comparison that began after this call: an answer that was on its way may be as old as what it is
   * to correct.
   * @throws where Postgres does not answer
   */
  compare(): Promise<void> {
    this.waiting ??= this.mayAsk().then(() => {
      this.waiting = undefined;
      return this.questions.request();
    });
    return this.waiting;
  }

  private async mayAsk(): Promise<void> {
    const restMs = this.askedAt + atMostEveryMs - this.clock.now();
    if (restMs > 0) await this.clock.pause(restMs);
  }

  private async ask(): Promise<void> {
    const sentAt = (this.askedAt = this.clock.now());
    const [row] = await this.postgres.query<{ now_ms: string }>(readClock);
    this.heard(Number(row!.now_ms), sentAt);
  }
}
