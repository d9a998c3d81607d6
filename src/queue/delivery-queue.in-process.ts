import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../infra/clock.js';
import { DeliveryQueue, lanes, type Consumption, type Lane, type PublishOutcome, type Take } from './delivery-queue.js';
import type { Chunk } from './chunk.js';

/** Before a chunk whose worker threw is given out again: do not spin on a bug. */
const pauseAfterFailureMs = 1000;

interface Waiting {
  chunk: Chunk;
  isRedelivered: boolean;
}

interface Consumer {
  take: Take;
  free: number;
  stopped: boolean;
  done: (() => void) | undefined;
  prefetch: number;
}

/**
 * The queue in this process's memory, where no broker is configured. It ends with the process; the ledger finds the
 * deliveries that were in it by the id of the process, and hands them out again at once.
 */
export class InProcessDeliveryQueue extends DeliveryQueue {
  private readonly logger = new Logger('InProcessDeliveryQueue');
  private readonly waiting: Record<Lane, Waiting[]> = { fresh: [], due: [], slow: [] };
  private readonly consumers: Record<Lane, Consumer[]> = { fresh: [], due: [], slow: [] };
  private closed = false;

  constructor(
    readonly process: string,
    private readonly maxChunks: number,
    private readonly clock: Clock = systemClock,
  ) {
    super();
  }

  get isAccepting(): boolean {
    // Without a consumer in this process no worker would take it: the dispatcher of a process that has one hands it out.
    return !this.closed && lanes.some((lane) => this.consumers[lane].length > 0) && !this.isFull;
  }

  /** Of first attempts: a backlog of repeated ones is no reason to leave these in the ledger. */
  private get isFull(): boolean {
    return this.waiting.fresh.length >= this.maxChunks || this.waiting.due.length >= this.maxChunks;
  }

  publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    if (this.closed || this.consumers[lane].length === 0 || this.waiting[lane].length >= this.maxChunks) {
      return Promise.resolve('refused');
    }
    this.waiting[lane].push({ chunk, isRedelivered: false });
    this.handOut(lane);
    return Promise.resolve('confirmed');
  }

  consume(lane: Lane, prefetch: number, take: Take): Promise<Consumption> {
    const consumer: Consumer = { take, free: prefetch, prefetch, stopped: false, done: undefined };
    this.consumers[lane].push(consumer);
    this.handOut(lane);
    return Promise.resolve({
      stop: async () => {
        consumer.stopped = true;
        this.consumers[lane] = this.consumers[lane].filter((other) => other !== consumer);
        if (consumer.free < consumer.prefetch) await new Promise<void>((resolve) => (consumer.done = resolve));
      },
    });
  }

  depth(lane: Lane): Promise<number> {
    return Promise.resolve(this.waiting[lane].length);
  }

  /** Never calls back: the queue is created once, with the process; the dispatcher frees the deliveries of the former process. */
  onCreated(): void {}

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  private handOut(lane: Lane): void {
    for (const consumer of this.consumers[lane]) {
      while (consumer.free > 0 && this.waiting[lane].length > 0) {
        void this.give(consumer, lane, this.waiting[lane].shift()!);
      }
    }
  }

  private async give(consumer: Consumer, lane: Lane, { chunk, isRedelivered }: Waiting): Promise<void> {
    consumer.free--;
    try {
      await consumer.take({ chunk, lane, isRedelivered });
    } catch (error) {
      this.logger.error({ event: 'queue.take-failed', lane, error });
      await this.clock.pause(pauseAfterFailureMs);
      this.waiting[lane].unshift({ chunk, isRedelivered: true });
    }
    consumer.free++;
    if (consumer.stopped && consumer.free === consumer.prefetch) consumer.done?.();
    this.handOut(lane);
  }
}
