import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Postgres } from '../infra/postgres/postgres.js';
import { countItems } from './alert-rows.js';
import { ruleNames } from './alert-rules.js';
import { openAlerts } from './alerts.metrics.js';
import { NoteSender } from './note-sender.service.js';
import { AlertRounds } from './rounds.service.js';

export const evaluateEveryMs = 15_000;
/** Rounds of all processes together are so far apart; a little less than the rhythm of each. */
const pauseMs = evaluateEveryMs - 1000;
export const sendEveryMs = 5000;
/** A start has other things to do. */
const firstAfterMs = 3000;
/** A call that hangs is left to its lease. */
const longestStopMs = 3000;

/**
 * Evaluates the rules and sends notes, in every process, whatever its roles: if only dispatchers did, nobody would be told that there
 * is none. One process at a time has a round, and one has each note. A server that hangs delays notes, and no round.
 */
@Injectable()
export class AlertLoop implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly logger = new Logger('Alerts');
  private readonly stopping = new AbortController();
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();

  constructor(
    private readonly postgres: Postgres,
    private readonly rounds: AlertRounds,
    private readonly sender: NoteSender,
  ) {}

  onApplicationBootstrap(): void {
    this.repeat(evaluateEveryMs, async () => {
      await this.rounds.run(pauseMs);
      await this.measure();
    });
    this.repeat(sendEveryMs, async () => {
      await this.sender.sendDue(this.stopping.signal);
    });
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    for (const timer of this.timers) clearTimeout(timer);
  }

  /** Not before every module was told to stop: the worker of this process would begin to finish its calls only then. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.race([Promise.all(this.running), pause(longestStopMs, undefined, { ref: false })]);
  }

  private repeat(everyMs: number, work: () => Promise<void>, delayMs = firstAfterMs): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      const run = this.attempt(work).finally(() => {
        this.running.delete(run);
        if (!this.stopping.signal.aborted) this.repeat(everyMs, work, everyMs);
      });
      this.running.add(run);
    }, delayMs).unref();
    this.timers.add(timer);
  }

  private async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      // The next round begins from what is in the ledger.
      if (!this.stopping.signal.aborted) this.logger.warn({ event: 'alerts.round-failed', error });
    }
  }

  private async measure(): Promise<void> {
    const rows = await this.postgres.transactionAside((query) => query<{ rule: string; count: number }>(countItems));
    const counts = new Map(rows.map(({ rule, count }) => [rule, count]));
    for (const rule of ruleNames) openAlerts.set({ rule }, counts.get(rule) ?? 0);
  }
}
