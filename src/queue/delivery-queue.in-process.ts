import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../infra/clock.js';
import { DeliveryQueue, lanes, type Consumption, type Lane, type PublishOutcome, type Take } from './delivery-queue.js';
import { bytesOf, type Chunk } from './chunk.js';

/** Before a chunk whose worker threw is given out again: do not spin on a bug. */
const pauseAfterFailureMs = 1000;
/** Of a lane: a backlog of millions stays in the ledger, and not in the memory of the process. Tens of thousands of deliveries of a kilobyte. */
const maxBytes = 64 * 1024 * 1024;

interface Waiting {
  chunk: Chunk;
  isRedelivered: boolean;
}

/** Chunks that wait, the first one first. */
class Line {
  readonly waiting: Waiting[] = [];
  private bytes = 0;

  constructor(private readonly maxChunks: number) {}

  get isFull(): boolean {
    return this.waiting.length >= this.maxChunks || this.bytes >= maxBytes;
  }

  push(next: Waiting): void {
    this.waiting.push(next);
    this.bytes += bytesOf(next.chunk);
  }

  /** Before all others. */
  putBack(next: Waiting): void {
    this.waiting.unshift(next);
    this.bytes += bytesOf(next.chunk);
  }

  shift(): Waiting | undefined {
    const first = this.waiting.shift();
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
  private readonly lines: Record<Lane, Line>;
  private readonly consumers: Record<Lane, Consumer[]> = { fresh: [], due: [], slow: [] };
  private closed = false;

  constructor(
    readonly process: string,
    maxChunks: number,
    private readonly clock: Clock = systemClock,
  ) {
    super();
    this.lines = { fresh: new Line(maxChunks), due: new Line(maxChunks), slow: new Line(maxChunks) };
  }

  get isAccepting(): boolean {
    // Without a consumer in this process no worker would take it: the dispatcher of a process that has one hands it out.
    return !this.closed && lanes.some((lane) => this.consumers[lane].length > 0) && !this.isFull;
  }

  /** Of first attempts: a backlog of repeated ones is no reason to leave these in the ledger. */
  private get isFull(): boolean {
    return this.lines.fresh.isFull || this.lines.due.isFull;
  }

  publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    if (this.closed || this.consumers[lane].length === 0 || this.lines[lane].isFull) return Promise.resolve('refused');
    this.lines[lane].push({ chunk, isRedelivered: false });
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
        for (const { chunk } of [...consumer.taken].reverse()) this.lines[lane].putBack({ chunk, isRedelivered: true });
        consumer.taken.clear();
        this.handOut(lane);
        return Promise.resolve();
      },
    });
  }

  depth(lane: Lane): Promise<number> {
    return Promise.resolve(this.lines[lane].waiting.length);
  }

  /** Never calls back: the queue is created once, with the process; the dispatcher frees the deliveries of the former process. */
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
        const next = this.lines[lane].shift();
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
      if (consumer.taken.has(waiting)) this.lines[lane].putBack({ chunk, isRedelivered: true });
    }
    consumer.taken.delete(waiting);
    consumer.free++;
    if (consumer.stopped && consumer.free === consumer.prefetch) consumer.done?.();
    this.handOut(lane);
  }
}
