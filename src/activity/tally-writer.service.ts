import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { OperationalEvents } from '../operational-events/operational-events.service.js';
import { addActivity, tens } from './activity-rows.js';
import { Tally } from './tally.js';

const everyMs = tens.seconds * 1000;
/** A timer may be early by a little. */
const shortestMs = 1000;
/** Subscriptions, channels and applications that one statement counts. */
const together = 1000;

/**
 * Adds what this process has counted to the table `activity`, every ten seconds and at its end. A process that is
 * killed takes up to ten seconds of it along, and what is written while the connection is lost may be counted twice: it
 * tells how much goes on, and no decision depends on it.
 */
@Injectable()
export class TallyWriter implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger('Activity');
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private isStopped = false;
  /** Milliseconds since 1970, by the ledger's clock; undefined: never. */
  private writtenAt: number | undefined;

  constructor(
    private readonly tally: Tally,
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
    private readonly events: OperationalEvents,
  ) {}

  onApplicationBootstrap(): void {
    this.writtenAt = this.ledgerClock.now();
    this.events.onReport((event) => {
      if (event.event === 'delivery.dead') this.tally.gaveUp(event.subscriptionId, event.count);
    });
    this.schedule();
  }

  /** After the last answer, for until then publications are accepted, and before the database is closed. */
  async onApplicationShutdown(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.writing;
    await this.write();
  }

  /**
   * Writes the counts until now, in the bucket of the middle of the time since the last one. Does not throw: it is
   * tried again.
   */
  async write(): Promise<void> {
    const now = this.ledgerClock.now();
    // Where Postgres' clock was set back, the last time lies ahead, and so might the middle.
    const at = (Math.min(this.writtenAt ?? now, now) + now) / 2;
    this.writtenAt = now;
    const tallied = this.tally.empty();
    try {
      while (tallied.length > 0) {
        const some = tallied.slice(0, together);
        await this.postgres.transactionAside((query) => addActivity(query, some, at));
        tallied.splice(0, together);
      }
    } catch (error) {
      this.tally.putBack(tallied);
      this.logger.warn({ event: 'activity.not-written', error });
    }
  }

  /** All processes at the same times, those at which a bucket ends. */
  private schedule(): void {
    const untilMs = everyMs - (this.ledgerClock.now() % everyMs);
    this.timer = setTimeout(
      () => {
        this.writing = this.write().finally(() => {
          if (!this.isStopped) this.schedule();
        });
      },
      untilMs < shortestMs ? untilMs + everyMs : untilMs,
    ).unref();
  }
}
