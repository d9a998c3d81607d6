import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { bytesOf, type Chunk } from '../../src/queue/chunk.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import type { DeliveryQueue, Lane, Taken } from '../../src/queue/delivery-queue.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { eventually } from '../support/eventually.js';
import { newDelivery } from '../support/new-delivery.js';
import { settled } from '../support/settled.js';

const maxLength = 10;

interface Adapter {
  name: string;
  open(): Promise<{ queue: DeliveryQueue; release: () => Promise<void> }>;
}

const adapters: Adapter[] = [
  {
    name: 'RabbitMQ',
    async open() {
      const queues: TestQueues = createQueuePrefix();
      const queue = new RabbitMqDeliveryQueue(queues.url, queues.prefix, maxLength);
      await queue.open();
      return { queue, release: () => queues.remove() };
    },
  },
  {
    name: 'in-process',
    async open() {
      const queue = new InProcessDeliveryQueue('this process', maxLength);
      await queue.open();
      return { queue, release: () => Promise.resolve() };
    },
  },
];

let counter = 0;

function chunk(body = Buffer.from('{"π":"€"}')): Chunk {
  return { catalogueVersion: 3, queuedAt: ++counter, deliveries: [newDelivery({ body })] };
}

/** A consumer that is done with a chunk when the test says so. */
class Hands {
  readonly taken: Taken[] = [];
  private readonly ends: { resolve: () => void; reject: (error: unknown) => void }[] = [];

  readonly take = (taken: Taken): Promise<void> => {
    this.taken.push(taken);
    return new Promise((resolve, reject) => this.ends.push({ resolve, reject }));
  };

  get order(): number[] {
    return this.taken.map(({ chunk: { queuedAt } }) => queuedAt);
  }

  done(nr: number): void {
    this.ends[nr]!.resolve();
  }

  fail(nr: number): void {
    this.ends[nr]!.reject(new Error('a bug'));
  }

  allDone(): void {
    for (const { resolve } of this.ends) resolve();
  }
}

describe.each(adapters)('the delivery queue, $name', (adapter) => {
  let queue: DeliveryQueue;
  let release: () => Promise<void>;
  let hands: Hands[];

  beforeAll(() => Logger.overrideLogger(false));

  beforeEach(async () => {
    ({ queue, release } = await adapter.open());
    hands = [];
  });
  afterEach(async () => {
    for (const each of hands) each.allDone();
    await queue.close();
    await release();
  });

  async function consume(lane: Lane, prefetch: number) {
    const mine = new Hands();
    hands.push(mine);
    const consumption = await queue.consume(lane, prefetch, mine.take);
    return Object.assign(mine, { stop: () => consumption.stop(), giveBack: () => consumption.giveBack() });
  }

  async function publish(lane: Lane, count = 1): Promise<Chunk[]> {
    const chunks = Array.from({ length: count }, chunk);
    for (const each of chunks) expect(await queue.publish(lane, each)).toBe('confirmed');
    return chunks;
  }

  it('gives out a published chunk unchanged', async () => {
    const consumer = await consume('due', 1);
    const [published] = await publish('due');
    await eventually(() => consumer.taken.length === 1);
    expect(consumer.taken).toEqual([{ chunk: published, lane: 'due', isRedelivered: false }]);
  });

  it('keeps the lanes apart', async () => {
    const due = await consume('due', 5);
    const slow = await consume('slow', 5);
    const [first] = await publish('slow');
    const [second] = await publish('due');
    await eventually(() => due.taken.length + slow.taken.length === 2);
    expect(slow.taken).toMatchObject([{ lane: 'slow', chunk: { queuedAt: first!.queuedAt } }]);
    expect(due.taken).toMatchObject([{ lane: 'due', chunk: { queuedAt: second!.queuedAt } }]);
  });

  it('gives out no more than the prefetch before some are done', async () => {
    const consumer = await consume('due', 2);
    await publish('due', 5);
    await eventually(() => consumer.taken.length === 2);
    await eventually(async () => (await queue.depth('due')) === 3);
    expect(consumer.taken).toHaveLength(2);
    consumer.done(1);
    await eventually(() => consumer.taken.length === 3);
    expect(await queue.depth('due')).toBe(2);
  });

  it('gives out in the order of publishing', async () => {
    const consumer = await consume('due', 1);
    const published = await publish('due', 8);
    for (let nr = 0; nr < 8; nr++) {
      await eventually(() => consumer.taken.length === nr + 1);
      consumer.done(nr);
    }
    expect(consumer.order).toEqual(published.map(({ queuedAt }) => queuedAt));
  });

  it('forgets a chunk that is done', async () => {
    const consumer = await consume('due', 5);
    await publish('due', 3);
    await eventually(() => consumer.taken.length === 3);
    consumer.allDone();
    await consumer.stop();
    expect(await queue.depth('due')).toBe(0);
    const next = await consume('due', 5);
    const [marker] = await publish('due');
    await eventually(() => next.taken.length > 0);
    expect(next.order).toEqual([marker!.queuedAt]);
  });

  it('gives out again, marked, a chunk whose consumer threw', async () => {
    const consumer = await consume('due', 1);
    const [published] = await publish('due');
    await eventually(() => consumer.taken.length === 1);
    consumer.fail(0);
    await eventually(() => consumer.taken.length === 2);
    expect(consumer.taken[1]).toEqual({ chunk: published, lane: 'due', isRedelivered: true });
    consumer.done(1);
    await consumer.stop();
    expect(await queue.depth('due')).toBe(0);
  });

  it('keeps to the prefetch while a failed chunk is still to come again', async () => {
    const consumer = await consume('due', 1);
    await publish('due', 3);
    await eventually(() => consumer.taken.length === 1);
    consumer.fail(0);
    await eventually(() => consumer.taken.length === 2);
    await eventually(async () => (await queue.depth('due')) === 2);
    expect(consumer.taken).toHaveLength(2);
  });

  it('refuses when it is full, and accepts again when there is room', async () => {
    const consumer = await consume('due', 1);
    const taken: Chunk[] = [];
    // RabbitMQ checks the limit on a round trip of its own and lets a few more in.
    await eventually(
      async () => {
        const next = chunk();
        const outcome = await queue.publish('due', next);
        if (outcome === 'confirmed') taken.push(next);
        return outcome === 'refused';
      },
      'the queue to refuse',
      { everyMs: 0 },
    );
    expect(taken.length).toBeGreaterThanOrEqual(maxLength);
    expect(taken.length).toBeLessThan(maxLength * 5);
    expect(queue.isAccepting).toBe(false);
    for (let nr = 0; nr < taken.length; nr++) {
      await eventually(() => consumer.taken.length > nr);
      consumer.done(nr);
    }
    await eventually(() => queue.isAccepting, 'the queue to accept again');
    await publish('due');
    expect(consumer.order.slice(0, taken.length)).toEqual(taken.map(({ queuedAt }) => queuedAt));
  });

  it('still accepts for one lane when the other is full', async () => {
    await consume('due', 1);
    await consume('slow', 1);
    await eventually(async () => (await queue.publish('slow', chunk())) === 'refused', 'refusal', { everyMs: 0 });
    await publish('due');
  });

  it('shares the work among its consumers', async () => {
    const first = await consume('due', 1);
    const second = await consume('due', 1);
    const published = await publish('due', 2);
    await eventually(() => first.taken.length === 1 && second.taken.length === 1);
    expect([...first.order, ...second.order].toSorted((a, b) => a - b)).toEqual(published.map((each) => each.queuedAt));
  });

  it('waits for the chunks a consumer has taken when it stops, and gives it no more', async () => {
    const consumer = await consume('due', 1);
    await publish('due', 3);
    await eventually(() => consumer.taken.length === 1);
    let stopped = false;
    const stop = consumer.stop().then(() => (stopped = true));
    await eventually(async () => (await queue.depth('due')) === 2);
    expect(stopped).toBe(false);
    consumer.done(0);
    await stop;
    expect(consumer.taken).toHaveLength(1);
    expect(await queue.depth('due')).toBe(2);
  });

  it('gives the chunks that a stopped consumer has not taken, or failed on, to the next', async () => {
    const consumer = await consume('due', 1);
    const published = await publish('due', 2);
    await eventually(() => consumer.taken.length === 1);
    consumer.fail(0);
    await consumer.stop();
    expect(consumer.taken).toHaveLength(1);
    const next = await consume('due', 5);
    await eventually(() => next.taken.length === 2);
    expect(next.order.toSorted((a, b) => a - b)).toEqual(published.map(({ queuedAt }) => queuedAt));
    expect(consumer.taken).toHaveLength(1);
  });

  it('gives the chunks that a consumer gives back to the next, marked and in their order, and ignores how it ends them', async () => {
    const consumer = await consume('due', 3);
    const published = await publish('due', 5);
    await eventually(() => consumer.taken.length === 3);
    consumer.done(1);
    await eventually(() => consumer.taken.length === 4);
    await consumer.giveBack();
    await eventually(async () => (await queue.depth('due')) === 4); // RabbitMQ may take a moment to put them back
    expect(consumer.taken).toHaveLength(4);
    const next = await consume('due', 5);
    await eventually(() => next.taken.length === 4);
    const [first, , third, fourth, fifth] = published.map(({ queuedAt }) => queuedAt);
    expect(next.order).toEqual([first, third, fourth, fifth]);
    expect(next.taken.map(({ isRedelivered }) => isRedelivered)).toEqual([true, true, true, false]);
    consumer.fail(0);
    consumer.allDone();
    const [marker] = await publish('due');
    next.allDone();
    await eventually(() => next.order.includes(marker!.queuedAt));
    expect([next.taken.length, consumer.taken.length]).toEqual([5, 4]);
  });

  it('can be told twice that a consumer stops', async () => {
    const consumer = await consume('due', 1);
    const other = await consume('due', 1);
    await consumer.stop();
    await consumer.stop();
    await publish('due');
    await eventually(() => other.taken.length === 1);
    expect(consumer.taken).toHaveLength(0);
  });

  it('counts the chunks that no consumer has taken yet', async () => {
    await consume('slow', 1);
    expect(await queue.depth('slow')).toBe(0);
    await publish('slow', 4);
    await eventually(async () => (await queue.depth('slow')) === 3);
    expect(await queue.depth('due')).toBe(0);
  });

  it('accepts while it is open, and refuses once it is closed', async () => {
    await consume('due', 1);
    expect(queue.isAccepting).toBe(true);
    expect(queue.trouble).toBeUndefined();
    await queue.close();
    expect(queue.isAccepting).toBe(false);
    expect(await queue.publish('due', chunk())).toBe('refused');
  });
});

describe('the queue in the memory of a process', () => {
  it('has a chunk once that was given back while it paused after the failure of its consumer', async () => {
    let endPause!: () => void;
    const clock = { now: () => 0, pause: () => new Promise<void>((resolve) => (endPause = resolve)) };
    const queue = new InProcessDeliveryQueue('this process', 2, clock);
    const hands = new Hands();
    const consumption = await queue.consume('due', 1, hands.take);
    await queue.publish('due', chunk());
    hands.fail(0);
    await settled();
    await consumption.giveBack();
    endPause();
    await settled();
    expect(await queue.depth('due')).toBe(1);
  });

  it('takes first attempts, and is no reason to leave them in the ledger, while its lane of repeated ones is full', async () => {
    const queue = new InProcessDeliveryQueue('this process', 2);
    for (const lane of ['fresh', 'due', 'slow'] as const) await queue.consume(lane, 1, new Hands().take);
    let accepted = 0;
    while ((await queue.publish('slow', chunk())) === 'confirmed') accepted++;
    expect(accepted).toBe(1 + 2); // one is taken
    expect(queue.isAccepting).toBe(true);
    expect(await queue.publish('fresh', chunk())).toBe('confirmed');
  });

  it('refuses as well where its chunks are few and large, and accepts again when they have been taken', async () => {
    const queue = new InProcessDeliveryQueue('this process', 50_000);
    const hands = new Hands();
    await queue.consume('due', 1, hands.take);
    const mebibyte = Buffer.alloc(1024 * 1024);
    let accepted = 0;
    while ((await queue.publish('due', chunk(mebibyte))) === 'confirmed') accepted++;
    expect(accepted).toBe(1 + 64); // one is taken
    const shared = {
      ...chunk(mebibyte),
      deliveries: [newDelivery({ body: mebibyte }), newDelivery({ body: mebibyte })],
    };
    expect([bytesOf(chunk(mebibyte)), bytesOf(shared)]).toEqual([mebibyte.length + 500, mebibyte.length + 1000]);
    expect(queue.isAccepting).toBe(false);
    hands.done(0);
    await eventually(() => queue.isAccepting, 'room');
    expect(await queue.publish('fresh', chunk())).toBe('refused'); // nobody takes it
    expect(await queue.publish('due', chunk(mebibyte))).toBe('confirmed');
  });
});
