import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { PartitionKeeper } from '../ledger/partition-keeper.service.js';
import { sweepOnceKeys } from '../ledger/once-key.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { sweepProgress } from '../queue/progress-reports.js';
import { Dispatcher } from './dispatcher.service.js';

const recoverEveryMs = 1000;
const sweepEveryMs = 60_000;
const vacuumEveryMs = 300_000;
const partitionsEveryMs = 3_600_000;

interface Task {
  name: string;
  everyMs: number;
  run: (stopping: AbortSignal) => Promise<unknown>;
}

/** Runs the dispatcher's tasks for as long as the process lives, each in its own rhythm and never twice at once. */
@Injectable()
export class DispatchLoop implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(DispatchLoop.name);
  private readonly tasks: Task[];
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(
    { settings }: Config,
    dispatcher: Dispatcher,
    postgres: Postgres,
    heartbeat: Heartbeat,
    partitions: PartitionKeeper,
    idempotency: IdempotencyStore,
  ) {
    this.tasks = [
      { name: 'hand-out', everyMs: settings.DISPATCH_INTERVAL_MS, run: (stopping) => dispatcher.handOutDue(stopping) },
      // A task each: a rule that has to wait for the queue keeps no other one waiting.
      ...dispatcher.rules.map((rule) => ({
        name: rule.name,
        everyMs: recoverEveryMs,
        run: (stopping: AbortSignal) => dispatcher.apply(rule, stopping),
      })),
      { name: 'sweep-locks', everyMs: sweepEveryMs, run: () => idempotency.sweep() },
      { name: 'sweep-keys', everyMs: sweepEveryMs, run: () => sweepOnceKeys(postgres) },
      { name: 'sweep-processes', everyMs: sweepEveryMs, run: () => heartbeat.sweep() },
      { name: 'sweep-progress', everyMs: sweepEveryMs, run: () => sweepProgress(postgres) },
      { name: 'vacuum', everyMs: vacuumEveryMs, run: () => partitions.vacuumEmbedded() },
      { name: 'make-partitions', everyMs: partitionsEveryMs, run: () => partitions.makeAhead() },
      { name: 'drop-partitions', everyMs: partitionsEveryMs, run: () => partitions.dropExpired() },
    ];
  }

  onApplicationBootstrap(): void {
    for (const task of this.tasks) this.schedule(task, 0);
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    for (const timer of this.timers) clearTimeout(timer);
    await Promise.all(this.running);
  }

  private schedule(task: Task, delayMs: number): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      const run = this.perform(task).finally(() => {
        this.running.delete(run);
        if (!this.stopping.signal.aborted) this.schedule(task, task.everyMs);
      });
      this.running.add(run);
    }, delayMs);
    this.timers.add(timer);
  }

  private async perform(task: Task): Promise<void> {
    try {
      await task.run(this.stopping.signal);
    } catch (error) {
      // Nothing is lost by it: all state is in the ledger, and the next round starts from there.
      this.logger.warn({ event: 'dispatcher.task-failed', task: task.name, error });
    }
  }
}
