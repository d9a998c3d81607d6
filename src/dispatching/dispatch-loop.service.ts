import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Clock } from '../infra/clock.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Repeating } from '../infra/repeating.js';
import { BacklogPace } from '../queue/backlog-pace.service.js';
import { Dispatcher } from './dispatcher.service.js';
import { roundAge } from './dispatching.metrics.js';
import { Measurements } from './measurements.service.js';
import { ReplayRunner } from '../replays/replay-runner.service.js';
import { Releaser } from './releaser.service.js';
import { Upkeep, type UpkeepTask } from './upkeep.service.js';

const recoverEveryMs = 1000;

type Task = UpkeepTask & { failures: RepeatedFailures };

/** Runs the dispatcher's tasks. */
@Injectable()
export class DispatchLoop implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  private readonly logger = new Logger(DispatchLoop.name);
  private readonly tasks: Task[];
  private readonly repeating = new Repeating();

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
    const tasks: UpkeepTask[] = [
      {
        name: 'hand-out',
        everyMs: settings.DISPATCH_INTERVAL_MS,
        run: (stopping: AbortSignal) => {
          let [since, before] = [clock.now(), 0];
          // Otherwise thousands are handed out long before they can be sent, and what is published meanwhile waits for
          // that.
          return dispatcher.handOutDue(stopping, async (handedOut) => {
            roundAge.renew('hand-out'); // a backlog may take a round for hours
            const restMs = pace.restAfter(handedOut - before, clock.now() - since);
            if (restMs > 0) await clock.pause(restMs, stopping);
            [since, before] = [clock.now(), handedOut];
          });
        },
      },
      {
        name: 'line-up',
        everyMs: settings.DISPATCH_INTERVAL_MS,
        run: (stopping: AbortSignal) => dispatcher.lineUp(stopping, () => roundAge.renew('line-up')),
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
    this.tasks = tasks.map((task) => ({ ...task, failures: this.failuresOf(task.name) }));
  }

  onApplicationBootstrap(): void {
    for (const task of this.tasks) {
      roundAge.renew(task.name); // one that never works ages from here on
      this.repeating.repeat(task.everyMs, (stopping) => this.perform(task, stopping), task.firstAfterMs ?? 0);
    }
  }

  onModuleDestroy(): void {
    this.repeating.stop();
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.repeating.ended();
  }

  private failuresOf(task: string): RepeatedFailures {
    const failed = { event: 'dispatcher.task-failed', task };
    const worksAgain = { event: 'dispatcher.task-works-again', task };
    return new RepeatedFailures(this.logger, { failed, worksAgain });
  }

  /** Nothing is lost where it fails: all state is in the ledger, and the next round starts from there. */
  private async perform({ name, run, failures }: Task, stopping: AbortSignal): Promise<void> {
    try {
      await run(stopping);
      failures.worked();
      roundAge.renew(name);
    } catch (error) {
      failures.failed(error);
    }
  }
}
