import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { BacklogPace } from '../queue/backlog-pace.service.js';
import { Dispatcher } from './dispatcher.service.js';
import { roundAge } from './dispatching.metrics.js';
import { Measurements } from './measurements.service.js';
import { ReplayRunner } from '../replays/replay-runner.service.js';
import { Releaser } from './releaser.service.js';
import { TaskFailures } from './task-failures.js';
import { Upkeep, type UpkeepTask } from './upkeep.service.js';

const recoverEveryMs = 1000;
/** A task that takes longer is left to the next start: what it has not committed is not done. */
const longestStopMs = 3000;

type Task = UpkeepTask & { firstAfterMs?: number; failures: TaskFailures };

/** Runs the dispatcher's tasks for as long as the process lives, each in its own rhythm and never twice at once. */
@Injectable()
export class DispatchLoop implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly logger = new Logger(DispatchLoop.name);
  private readonly tasks: Task[];
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  constructor(
    { settings }: Config,
    dispatcher: Dispatcher,
    releaser: Releaser,
    replays: ReplayRunner,
    upkeep: Upkeep,
    measurements: Measurements,
    pace: BacklogPace,
    clock: Clock,
  ) {
    const tasks = [
      {
        name: 'hand-out',
        everyMs: settings.DISPATCH_INTERVAL_MS,
        run: (stopping: AbortSignal) => {
          let [since, before] = [clock.now(), 0];
          // Otherwise thousands are handed out long before they can be sent, and what is published meanwhile waits for that.
          return dispatcher.handOutDue(stopping, async (handedOut) => {
            roundAge.renew('hand-out'); // a backlog may take a round for hours
            const restMs = pace.restAfter(handedOut - before, clock.now() - since);
            if (restMs > 0) await clock.pause(restMs, stopping);
            [since, before] = [clock.now(), handedOut];
          });
        },
      },
      {
        name: 'release',
        everyMs: settings.DISPATCH_INTERVAL_MS,
        run: (stopping: AbortSignal) => releaser.releaseHeld(stopping, () => roundAge.renew('release')),
      },
      {
        name: 'replay',
        everyMs: settings.DISPATCH_INTERVAL_MS,
        run: (stopping: AbortSignal) => replays.stepAll(stopping),
      },
      // A task each: a rule that has to wait for the queue keeps no other one waiting.
      ...dispatcher.rules.map((rule) => ({
        name: rule.name,
        everyMs: recoverEveryMs,
        run: (stopping: AbortSignal) => dispatcher.apply(rule, stopping),
      })),
      ...upkeep.tasks,
      ...measurements.tasks,
    ];
    const now = () => performance.now();
    this.tasks = tasks.map((task) => ({ ...task, failures: new TaskFailures(task.name, this.logger, now) }));
  }

  onApplicationBootstrap(): void {
    for (const task of this.tasks) {
      roundAge.renew(task.name); // one that never works ages from here on
      this.schedule(task, task.firstAfterMs ?? 0);
    }
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    for (const timer of this.timers) clearTimeout(timer);
  }

  /** Not before every module was told to stop: a statement may take long, and the worker of this process has 11 s for its calls. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.race([Promise.all(this.running), pause(longestStopMs, undefined, { ref: false })]);
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

  private async perform({ name, run, failures }: Task): Promise<void> {
    try {
      await run(this.stopping.signal);
      failures.worked();
      roundAge.renew(name);
    } catch (error) {
      failures.failed(error);
    }
  }
}
