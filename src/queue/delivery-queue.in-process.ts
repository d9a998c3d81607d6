import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../infra/clock.js';
import {
  DeliveryQueue,
  lanes,
  perLane,
  type Consumption,
  type Lane,
  type PublishOutcome,
  type Take,
} from './delivery-queue.js';
import { bytesOf, type Chunk } from './chunk.js';

/** Before a chunk whose worker threw is given out again: do not spin on a bug. */
const pauseAfterFailureMs = 1000;
/**
 * Of a lane: a backlog of millions stays in the ledger, and not in the memory of the process. Tens of thousands of
 * deliveries of a kilobyte.
 */
const maxBytes = 64 * 1024 * 1024;

interface Waiting {
  chunk: Chunk;
  isRedelivered: boolean;
}

/** The chunks that wait in a lane, the first one first. */
class WaitingChunks {
  readonly chunks: Waiting[] = [];
  private bytes = 0;

  constructor(private readonly maxChunks: number) {}

  get isFull(): boolean {
    return this.chunks.length >= this.maxChunks || this.bytes >= maxBytes;
  }

  push(next: Waiting): void {
    this.chunks.push(next);
    this.bytes += bytesOf(next.chunk);
  }

  /** Before all others. */
  putBack(next: Waiting): void {
    this.chunks.unshift(next);
    this.bytes += bytesOf(next.chunk);
  }

  shift(): Waiting | undefined {
    const first = this.chunks.shift();
    if (first) this.bytes -= bytesOf(first.chunk);
    return first;
  }
}

interface Consumer {
  take: Take;
  free: number;
  /** In the order in which it took them. */
  taken: Set<Waiting>;
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
  private readonly waiting: Record<Lane, WaitingChunks>;
  private readonly consumers: Record<Lane, Consumer[]> = perLane(() => []);
  private closed = false;

  constructor(
    readonly process: string,
    maxChunks: number,
    private readonly clock: Clock = systemClock,
  ) {
    super();
    this.waiting = perLane(() => new WaitingChunks(maxChunks));
  }

  get isAccepting(): boolean {
    // Without a consumer in this process no worker would take it: the dispatcher of a process that has one hands it
    // out.
    return !this.closed && lanes.some((lane) => this.consumers[lane].length > 0) && !this.isFull;
  }

  /** Of first attempts: a backlog of repeated ones is no reason to leave these in the ledger. */
  private get isFull(): boolean {
    return this.waiting.fresh.isFull || this.waiting.due.isFull;
  }

  publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    if (this.closed || this.consumers[lane].length === 0 || this.waiting[lane].isFull)
      return Promise.resolve('refused');
    this.waiting[lane].push({ chunk, isRedelivered: false });
    this.handOut(lane);
    return Promise.resolve('confirmed');
  }

  consume(lane: Lane, prefetch: number, take: Take): Promise<Consumption> {
    const consumer: Consumer = { take, free: prefetch, taken: new Set(), prefetch, stopped: false, done: undefined };
    this.consumers[lane].push(consumer);
    this.handOut(lane);
    return Promise.resolve({
      stop: async () => {
        this.remove(lane, consumer);
        if (consumer.free < consumer.prefetch) await new Promise<void>((resolve) => (consumer.done = resolve));
      },
      giveBack: () => {
        this.remove(lane, consumer);
        for (const { chunk } of [...consumer.taken].reverse())
          this.waiting[lane].putBack({ chunk, isRedelivered: true });
        consumer.taken.clear();
        this.handOut(lane);
        return Promise.resolve();
      },
    });
  }

  depth(lane: Lane): Promise<number> {
    return Promise.resolve(this.waiting[lane].chunks.length);
  }

  /**
   * Never calls back: the queue is created once, with the process; the dispatcher frees the deliveries of the former
   * process.
   */
  onCreated(): void {}

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }

  private remove(lane: Lane, consumer: Consumer): void {
    consumer.stopped = true;
    this.consumers[lane] = this.consumers[lane].filter((other) => other !== consumer);
  }

  private handOut(lane: Lane): void {
    for (const consumer of this.consumers[lane]) {
      while (consumer.free > 0) {
        const next = this.waiting[lane].shift();
        if (!next) return;
        void this.give(consumer, lane, next);
      }
    }
  }

  private async give(consumer: Consumer, lane: Lane, waiting: Waiting): Promise<void> {
    const { chunk, isRedelivered } = waiting;
    consumer.free--;
    consumer.taken.add(waiting);
    try {
      await consumer.take({ chunk, lane, isRedelivered });
    } catch (error) {
      this.logger.error({ event: 'queue.take-failed', lane, error });
      await this.clock.pause(pauseAfterFailureMs);
      // It may have been given back meanwhile.
      if (consumer.taken.has(waiting)) this.waiting[lane].putBack({ chunk, isRedelivered: true });
    }
    consumer.taken.delete(waiting);
    consumer.free++;
    if (consumer.stopped && consumer.free === consumer.prefetch) consumer.done?.();
    this.handOut(lane);
  }
}
