import { Injectable } from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
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

/**
 * The time by Postgres' clock, as this process knows it. All processes share that one; their own clocks may differ, and
 * may be set while the process runs. Where Postgres' clock is set, or the machine of this process was suspended, the
 * next heartbeat puts it right: before something is refused because it lies ahead of this time, compare.
 */
@Injectable()
export class LedgerClock {
  private offsetMs = 0;
  private askedAt = -Infinity;
  private waiting: Promise<void> | undefined;
  private readonly questions = new SharedRuns(() => this.ask());

  constructor(
    private readonly postgres: Postgres,
    private readonly clock: Clock,
  ) {}

  /** Whole milliseconds since 1970. */
  now(): number {
    return Math.round(this.clock.now() + this.offsetMs);
  }

  /** @param sentAt by the clock of this process: when Postgres was asked. The answer has come just now. */
  heard(ledgerAt: number, sentAt: number): void {
    this.offsetMs = narrowOffset(this.offsetMs, sentAt, ledgerAt, this.clock.now());
  }

  /**
   * Resolves after a comparison that began after this call: an answer that was on its way may be as old as what it is
   * to correct. Calls share one, and wait a little where they are many.
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
