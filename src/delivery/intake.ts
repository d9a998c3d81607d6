import { Logger } from '@nestjs/common';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { lanes, type Consumption, type DeliveryQueue, type Lane, type Taken } from '../queue/delivery-queue.js';
import type { QueueProgress } from '../queue/queue-progress.service.js';

const checkMs = 1000;

/** Unacknowledged chunks per lane, at most. Most are for fresh deliveries, so that these find room in memory. */
export const prefetch: Record<Lane, number> = { fresh: 64, due: 8, slow: 16 };

/**
 * @param givenBack aborted when the chunk has gone back to the queue: nothing of it that has not begun is to be done
 * any more
 */
type TakeHere = (taken: Taken, givenBack: AbortSignal) => Promise<void>;

/**
 * Takes chunks from the queue for as long as this process reaches Postgres (docs/decisions/0082). Others may reach it
 * all the same, and would wait for what this one has taken: the broker shares chunks out among all that consume.
 */
export class Intake {
  private readonly logger = new Logger('Intake');
  private consumptions: Consumption[] = [];
  private givenBack = new AbortController();
  private isTaking = true;
  /** One after the other: a consumer that is being cancelled is gone before there is another. */
  private changes: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly queue: DeliveryQueue,
    private readonly heartbeat: Pick<Heartbeat, 'hasExpired'>,
    private readonly progress: Pick<QueueProgress, 'take' | 'finish' | 'giveBackAll'>,
    private readonly takeHere: TakeHere,
  ) {}

  async start(): Promise<void> {
    await this.consume();
    // Nobody else could take what is in the memory of this process.
    if (this.queue.process === null) this.timer = setInterval(() => this.check(), checkMs).unref();
  }

  /** Takes no more; resolves when every chunk taken is done with. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.changes;
    await Promise.all(this.consumptions.map((consumption) => consumption.stop()));
  }

  private check(): void {
    const mayTake = !this.heartbeat.hasExpired;
    if (mayTake === this.isTaking) return;
    this.isTaking = mayTake;
    this.changes = this.changes.then(() => (mayTake ? this.takeAgain() : this.giveBack()));
  }

  private async giveBack(): Promise<void> {
    this.logger.warn({ event: 'queue.given-back' });
    const given = this.consumptions.map((consumption) => consumption.giveBack());
    this.consumptions = [];
    this.givenBack.abort();
    this.progress.giveBackAll();
    await Promise.all(given);
  }

  private async takeAgain(): Promise<void> {
    this.givenBack = new AbortController();
    await this.consume();
    this.logger.log({ event: 'queue.taken-again' });
  }

  private async consume(): Promise<void> {
    const { signal } = this.givenBack;
    this.consumptions = await Promise.all(
      lanes.map((lane) => this.queue.consume(lane, prefetch[lane], (taken) => this.take(taken, signal))),
    );
  }

  private async take(taken: Taken, givenBack: AbortSignal): Promise<void> {
    const { lane, chunk } = taken;
    this.progress.take(lane, chunk.queuedAt);
    try {
      await this.takeHere(taken, givenBack);
    } finally {
      if (!givenBack.aborted) this.progress.finish(lane, chunk.queuedAt);
    }
  }
}
