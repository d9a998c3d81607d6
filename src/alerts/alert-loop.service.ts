import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Postgres } from '../infra/postgres/postgres.js';
import { countItems } from './alert-rows.js';
import { ruleNames } from './alert-rules.js';
import { openAlerts } from './alerts.metrics.js';
import { NoteSender } from './note-sender.service.js';
import { AlertRounds } from './rounds.service.js';

const everyMs = 15_000;
/** A start has other things to do. */
const firstAfterMs = 3000;
/** Rounds of all processes together are so far apart; a little less than the rhythm of each. */
const pauseMs = everyMs - 1000;
/** A call that hangs is left to its lease. */
const longestStopMs = 3000;

/**
 * Evaluates the rules and sends notes, in every process, whatever its roles: if only dispatchers did, nobody would be told that there
 * is none. One process at a time has a round, and one has each note.
 */
@Injectable()
export class AlertLoop implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Alerts');
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly postgres: Postgres,
    private readonly rounds: AlertRounds,
    private readonly sender: NoteSender,
  ) {}

  onApplicationBootstrap(): void {
    this.schedule(firstAfterMs);
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await Promise.race([this.running, pause(longestStopMs, undefined, { ref: false })]);
  }

  private schedule(delayMs: number): void {
    this.timer = setTimeout(() => {
      this.running = this.once().finally(() => {
        if (!this.stopping.signal.aborted) this.schedule(everyMs);
      });
    }, delayMs).unref();
  }

  private async once(): Promise<void> {
    for (const work of [this.evaluate, this.send, this.measure]) {
      if (this.stopping.signal.aborted) return;
      try {
        await work();
      } catch (error) {
        // The next round begins from what is in the ledger.
        if (!this.stopping.signal.aborted) this.logger.warn({ event: 'alerts.round-failed', error });
      }
    }
  }

  private readonly evaluate = () => this.rounds.run(pauseMs);
  private readonly send = () => this.sender.sendDue(this.stopping.signal);
  private readonly measure = async () => {
    const rows = await this.postgres.query<{ rule: string; count: number }>(countItems);
    const counts = new Map(rows.map(({ rule, count }) => [rule, count]));
    for (const rule of ruleNames) openAlerts.set({ rule }, counts.get(rule) ?? 0);
  };
}
