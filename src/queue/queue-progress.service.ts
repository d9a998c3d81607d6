import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { lanes, perLane, type Lane } from './delivery-queue.js';
import { LaneProgress } from './lane-progress.js';
import { recordProgress } from './progress-reports.js';

const intervalMs = 1000;

/**
 * How far this process is with the queue. Reported every second, so that dispatchers can tell which deliveries the
 * queue has lost.
 */
@Injectable()
export class QueueProgress implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(QueueProgress.name);
  private readonly progress = perLane(() => new LaneProgress());
  private timer: NodeJS.Timeout | undefined;
  private readonly reporting = new RepeatedFailures(this.logger, {
    failed: { event: 'queue.progress-not-reported' },
    worksAgain: { event: 'queue.progress-reported-again' },
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  /** @param queuedAt when the ledger handed out the chunk that was taken */
  take(lane: Lane, queuedAt: number): void {
    this.progress[lane].take(queuedAt);
  }

  /** The chunk is done. */
  finish(lane: Lane, queuedAt: number): void {
    this.progress[lane].finish(queuedAt);
  }

  /** All chunks that are not done have gone back to the queue. They are not finished here any more. */
  giveBackAll(): void {
    for (const lane of lanes) this.progress[lane].giveBackAll();
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.report(), intervalMs).unref();
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  private async report(): Promise<void> {
    const reports = lanes.flatMap((lane) => {
      const report = this.progress[lane].report();
      return report ? [{ lane, ...report }] : [];
    });
    if (reports.length === 0) return;
    await this.reporting.note(recordProgress(this.postgres, this.heartbeat.processId, reports));
  }
}
