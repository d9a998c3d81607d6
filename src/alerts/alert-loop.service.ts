import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Repeating } from '../infra/repeating.js';
import { countItems } from './alert-rows.js';
import { ruleNames } from './alert-rules.js';
import { openAlertsGauge } from './alerts.metrics.js';
import { NoteSender } from './note-sender.service.js';
import { AlertRounds } from './rounds.service.js';

/** From one round of a process to its next, where it is the only one. */
export const evaluateEveryMs = 15_000;
/**
 * So much later a process that has had a round tries again than the others: of two that try in the same rhythm one
 * could have all of them for hours, and the first round of a build that is not known yet would not come.
 */
const givesWayMs = 1000;
const tryEveryMs = evaluateEveryMs - givesWayMs;
/** Rounds of all processes together are so far apart; a little less than the rhythm of each. */
const pauseMs = tryEveryMs - 1000;
/**
 * So much longer for each other build that has waited longer for a round; a little more than the rhythm of each. Ten
 * processes of one build, which give way one after the other, would leave none to a lone one of another build for so
 * long that it counts as gone (`buildsSeen`).
 */
const pausePerBuildMs = tryEveryMs + 1000;
export const sendEveryMs = 5000;
/** A start has other things to do. */
const firstAfterMs = 3000;

/**
 * Evaluates the rules and sends notes, in every process, whatever its roles: if only dispatchers did, nobody would be
 * told that there is none. One process at a time has a round, and one has each note. A server that hangs delays the
 * notes of its channel, and neither those of the other one nor a round.
 */
@Injectable()
export class AlertLoop implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly logger = new Logger('Alerts');
  private readonly repeating = new Repeating();

  constructor(
    private readonly postgres: Postgres,
    private readonly rounds: AlertRounds,
    private readonly sender: NoteSender,
    private readonly clock: Clock,
  ) {}

  onApplicationBootstrap(): void {
    this.repeat(tryEveryMs, async (stopping) => {
      const hadRound = await this.rounds.run(pauseMs, pausePerBuildMs);
      await this.measure();
      if (hadRound) await this.clock.pause(givesWayMs, stopping);
    });
    for (const channel of this.sender.channelNames)
      this.repeat(sendEveryMs, (stopping) => this.sender.sendDue(channel, stopping));
  }

  onModuleDestroy(): void {
    this.repeating.stop();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.repeating.ended();
  }

  private repeat(everyMs: number, work: (stopping: AbortSignal) => Promise<unknown>): void {
    const rounds = new RepeatedFailures(this.logger, {
      failed: { event: 'alerts.round-failed' },
      worksAgain: { event: 'alerts.round-works-again' },
    });
    const round = async (stopping: AbortSignal) => {
      try {
        await work(stopping);
        rounds.worked();
      } catch (error) {
        // The next round begins from what is in the ledger.
        if (!stopping.aborted) rounds.failed(error);
      }
    };
    this.repeating.repeat(everyMs, round, firstAfterMs);
  }

  private async measure(): Promise<void> {
    const rows = await this.postgres.transactionAside((query) => query<{ rule: string; count: number }>(countItems));
    const counts = new Map(rows.map(({ rule, count }) => [rule, count]));
    for (const rule of ruleNames) openAlertsGauge.set({ rule }, counts.get(rule) ?? 0);
  }
}
