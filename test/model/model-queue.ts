import type { Chunk } from '../../src/queue/chunk.js';
import { decodeChunk, encodeChunk } from '../../src/queue/chunk-format.js';
import {
  DeliveryQueue,
  type Consumption,
  type Lane,
  type PublishOutcome,
  type Take,
} from '../../src/queue/delivery-queue.js';
import type { Gates } from './gates.js';

interface Message {
  lane: Lane;
  content: Buffer;
  isRedelivered: boolean;
}

interface Consumer {
  process: number;
  lane: Lane;
  take: Take;
  /** Handed out and not acknowledged. */
  taken: Set<Message>;
  /** Given out and not done, acknowledged or not. */
  work: Set<Promise<void>>;
}

/** A broker that the test controls: it gives messages out in any order, late, twice, or never. */
export class ModelBroker {
  private messages: Message[] = [];
  private consumers: Consumer[] = [];
  private readonly createdListeners: { process: number; call: () => void }[] = [];

  constructor(private readonly gates: Gates) {}

  get count(): number {
    return this.messages.length;
  }

  depth(lane: Lane): number {
    return this.messages.filter((message) => message.lane === lane).length;
  }

  put(lane: Lane, chunk: Chunk): void {
    this.messages.push({ lane, content: encodeChunk(chunk), isRedelivered: false });
  }

  consume(process: number, lane: Lane, take: Take): Consumption {
    const consumer: Consumer = { process, lane, take, taken: new Set(), work: new Set() };
    this.consumers.push(consumer);
    return {
      stop: async () => {
        this.consumers = this.consumers.filter((other) => other !== consumer);
        await Promise.all(consumer.work);
      },
      giveBack: () => {
        this.consumers = this.consumers.filter((other) => other !== consumer);
        this.requeueOf(consumer);
        return Promise.resolve();
      },
    };
  }

  onCreated(process: number, call: () => void): void {
    this.createdListeners.push({ process, call });
  }

  /** Gives the `pick`-th of the messages that this process takes to it. @returns false if there is none */
  hand(pick: number, process: number): boolean {
    const candidates = this.messages.filter(({ lane }) => this.consumerOf(process, lane));
    const message = candidates[pick % candidates.length];
    if (!message) return false;
    const { lane, content, isRedelivered } = message;
    const consumer = this.consumerOf(process, lane)!;
    this.messages = this.messages.filter((other) => other !== message);
    consumer.taken.add(message);
    const work = consumer.take({ chunk: decodeChunk(content), lane, isRedelivered }).then(() => {
      consumer.taken.delete(message);
      consumer.work.delete(work);
    });
    consumer.work.add(work);
    return true;
  }

  double(pick: number): void {
    const message = this.messages[pick % this.messages.length];
    if (message) this.messages.push({ ...message });
  }

  /**
   * The connection of its consumers is lost: messages they took and did not acknowledge go to another consumer as well.
   */
  requeue(process: number): void {
    for (const consumer of this.consumers) if (consumer.process === process) this.requeueOf(consumer);
  }

  /** @param isNoticed whether the queue had to be created anew, or was only emptied */
  wipe(isNoticed: boolean): void {
    this.messages = [];
    for (const { taken } of this.consumers) taken.clear();
    if (isNoticed) for (const { call } of this.createdListeners) call();
  }

  end(process: number): void {
    this.requeue(process);
    this.consumers = this.consumers.filter((consumer) => consumer.process !== process);
    for (let i = this.createdListeners.length; i-- > 0;)
      if (this.createdListeners[i]!.process === process) this.createdListeners.splice(i, 1);
  }

  /** A publisher's connection: the message, and the confirmation, may each get lost. */
  async publish(process: number, lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    try {
      await this.gates.step(process, 'publish', () => Promise.resolve(this.put(lane, chunk)));
      return 'confirmed';
    } catch {
      return 'refused';
    }
  }

  private requeueOf({ taken }: Consumer): void {
    this.messages.push(...[...taken].map((message) => ({ ...message, isRedelivered: true })));
    taken.clear();
  }

  private consumerOf(process: number, lane: Lane): Consumer | undefined {
    return this.consumers.find((consumer) => consumer.process === process && consumer.lane === lane);
  }
}

/** The broker as one process reaches it. */
export class ModelQueue extends DeliveryQueue {
  readonly process = null;
  readonly isAccepting = true;

  constructor(
    private readonly broker: ModelBroker,
    private readonly number: number,
  ) {
    super();
  }

  publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome> {
    return this.broker.publish(this.number, lane, chunk);
  }

  consume(lane: Lane, _prefetch: number, take: Take): Promise<Consumption> {
    return Promise.resolve(this.broker.consume(this.number, lane, take));
  }

  depth(lane: Lane): Promise<number> {
    return Promise.resolve(this.broker.depth(lane));
  }

  onCreated(listener: () => void): void {
    this.broker.onCreated(this.number, listener);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
