import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Config } from './config/config.module.js';
import { Turns } from './delivery/turns.service.js';
import { Worker } from './delivery/worker.service.js';
import { Dispatcher, type Recovered } from './dispatching/dispatcher.service.js';
import { releaseAll, type HeldWork } from './dispatching/release-all.js';
import { Releaser } from './dispatching/releaser.service.js';
import { Upkeep } from './dispatching/upkeep.service.js';
import { Clock } from './infra/clock.js';
import { DeliveryQueue, lanes } from './queue/delivery-queue.js';
import { ReplayRunner } from './replays/replay-runner.service.js';

/** Between two looks at what is still in this process. */
const betweenLooksMs = 20;
/** Beyond the time that one call may take: its outcome is written to the ledger, and the next look comes after that. */
const patienceMs = 5000;

interface Done {
  /** Deliveries that were handed out as due. */
  dispatched: number;
  /** Deliveries that were held, and were released. */
  released: number;
  /** Deliveries that were freed or ended by a rule. */
  recovered: number;
  /** Names of rules and of tasks of the upkeep. */
  failedTasks: string[];
}

/**
 * One run of the dispatcher, as cron starts it: does all that a dispatcher does, until nothing is left that it can do
 * now. Where the queue is in this process's memory, it waits for the calls as well.
 */
export class OneRun {
  private readonly queue: DeliveryQueue;
  private readonly dispatcher: Dispatcher;
  private readonly heldWork: HeldWork;
  private dispatched = 0;
  private released = 0;
  private recovered = 0;
  private readonly failed = new Set<string>();

  /** @param stopping aborted when the run is to end early: the next one goes on from there */
  constructor(
    private readonly app: INestApplicationContext,
    private readonly logger: LoggerService,
    private readonly stopping: AbortSignal,
  ) {
    this.queue = app.get(DeliveryQueue);
    this.dispatcher = app.get(Dispatcher);
    const releaser = app.get(Releaser);
    this.heldWork = {
      release: () => releaser.releaseHeld(stopping),
      isAnyInHand: async () => this.queue.process !== null && !(await this.isAllSent()),
      findLeft: () => releaser.findLeft(),
    };
  }

  async run(): Promise<Done> {
    // Before: it may be time for them while it sends the others.
    const areUndecided = await this.dispatcher.sendingEnded.anyUndecided();
    await this.handOutAll();
    for (const task of await this.app.get(Upkeep).once(this.stopping)) this.failed.add(task);
    // Last: a run that may take less long would do nothing but wait.
    if (areUndecided) {
      this.note(await this.dispatcher.endSending(this.stopping));
      if (!this.stopping.aborted) await this.handOutAll();
    }
    const { dispatched, released, recovered, failed } = this;
    return { dispatched, released, recovered, failedTasks: [...failed] };
  }

  private async handOutAll(): Promise<void> {
    this.note(await this.dispatcher.recover(this.stopping));
    await this.app.get(ReplayRunner).stepAll(this.stopping);
    const before = this.dispatched;
    await this.dispatcher.handOutDue(this.stopping, (soFar) => {
      this.dispatched = before + soFar;
      this.logger.log({ event: 'dispatch.progress', dispatched: this.dispatched });
    });
    const longestCallMs = this.app.get(Config).settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000;
    const clock = this.app.get(Clock);
    this.released += await releaseAll(this.heldWork, clock, longestCallMs + patienceMs, this.stopping);
    if (this.queue.process !== null) await this.emptied();
  }

  private note({ deliveries, failedRules }: Recovered): void {
    this.recovered += deliveries;
    for (const rule of failedRules) this.failed.add(rule);
  }

  /**
   * Nothing is in the queue, and nothing in hand: a delivery that ends passes its turn on to the next one about the
   * same object, which is sent by this process as well. Closing sooner would have each run send one of them; and it
   * would cut a call that takes longer than closing may, in every run.
   */
  private async isAllSent(): Promise<boolean> {
    // In this order: what leaves the queue is in hand at once, and what gets a turn is in the queue before the turn
    // counts as passed on.
    return (await this.isEmpty()) && this.app.get(Worker).isIdle && this.app.get(Turns).isIdle;
  }

  /** When this process is told to stop, the next run hands out again what is left in the queue. */
  private async emptied(): Promise<void> {
    while (!this.stopping.aborted && !(await this.isEmpty())) await pause(betweenLooksMs);
  }

  private async isEmpty(): Promise<boolean> {
    const depths = await Promise.all(lanes.map((lane) => this.queue.depth(lane)));
    return depths.every((depth) => depth === 0);
  }
}
