import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Enqueuer } from '../../src/enqueueing/enqueuer.service.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import type { DeliveryQueue, Taken } from '../../src/queue/delivery-queue.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { eventually } from '../support/eventually.js';
import { delivered, retried, TestLedger } from '../support/ledger.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';

// Nobody here makes it wait for a report that is under way.
jest.unstable_mockModule('node:timers/promises', () => ({
  setTimeout: (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 100))),
}));
const { Dispatcher } = await import('../../src/dispatching/dispatcher.service.js');

Logger.overrideLogger(false);
const hourMs = 3_600_000;

/** One process with a dispatcher, and a worker that holds what it takes. */
class TestProcess {
  readonly taken: Taken[] = [];
  readonly dispatcher: InstanceType<typeof Dispatcher>;
  readonly enqueuer: Enqueuer;
  private constructor(
    readonly test: TestLedger,
    readonly queue: DeliveryQueue,
  ) {
    this.enqueuer = new Enqueuer(queue, test.leases, test.heartbeat);
    this.dispatcher = new Dispatcher(test.leases, queue, this.enqueuer, test.heartbeat);
  }

  static async open(settings: Record<string, string>): Promise<TestProcess> {
    const test = await TestLedger.open(settings);
    await test.heartbeat.onApplicationBootstrap();
    return TestProcess.with(test, settings);
  }

  /** With a ledger that is open already. */
  static async with(test: TestLedger, settings: Record<string, string>): Promise<TestProcess> {
    const queue = settings.AMQP_URL
      ? new RabbitMqDeliveryQueue(settings.AMQP_URL, settings.QUEUE_PREFIX!, 1000)
      : new InProcessDeliveryQueue(test.heartbeat.processId, 1000);
    const process = new TestProcess(test, queue);
    await queue.open();
    return process;
  }

  /** Takes all there is, or with a prefetch of 1 the first chunk of each lane and no more. */
  async work(prefetch = 1000): Promise<void> {
    for (const lane of ['due', 'slow'] as const) {
      await this.queue.consume(lane, prefetch, (taken) => {
        this.taken.push(taken);
        return prefetch === 1 ? new Promise<void>(() => {}) : Promise.resolve();
      });
    }
  }

  get deliveries(): string[] {
    return this.taken.flatMap(({ chunk }) =>
      chunk.deliveries.map((each) => `${each.subscriptionId}#${each.generation}`),
    );
  }

  async close(): Promise<void> {
    await this.queue.close();
    await this.test.heartbeat.stop();
    await this.test.close();
  }
}

const named = (deliveries: Delivery[], generation: number) =>
  deliveries.map(({ subscriptionId }) => `${subscriptionId}#${generation}`).toSorted();

describe.each([embedded, real])('the dispatcher on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let process: TestProcess;
  let test: TestLedger;
  let queues: TestQueues | undefined;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
    await test.heartbeat.onApplicationBootstrap();
  });
  beforeEach(async () => {
    await test.clear();
    queues = stack === real ? createQueuePrefix() : undefined;
    process = await TestProcess.with(test, {
      ...prepared.settings,
      ...(queues ? { QUEUE_PREFIX: queues.prefix } : {}),
    });
  });
  afterEach(async () => {
    await process.queue.close();
    await queues?.remove();
  });
  afterAll(async () => {
    await test.heartbeat.stop();
    await test.close();
    await prepared.release();
  });

  it('hands what is due to the queue, once, first attempts apart from the rest', async () => {
    await process.work();
    const fresh = await test.accept(100, { state: 'waiting', delayMs: 0 });
    const failed = await test.accept(100);
    for (const each of failed) void test.ledger.settle(retried(each, 0));
    await test.ledger.drain();
    const progress: number[] = [];
    expect(await process.dispatcher.dispatchDue((count) => progress.push(count))).toBe(200);
    expect(progress.at(-1)).toBe(200);
    expect(await process.dispatcher.dispatchDue()).toBe(0);
    await eventually(() => process.deliveries.length === 200);
    const ofLane = (lane: string) =>
      process.taken.filter((each) => each.lane === lane).flatMap(({ chunk }) => chunk.deliveries);
    expect(
      ofLane('due')
        .map((each) => `${each.subscriptionId}#${each.generation}`)
        .toSorted(),
    ).toEqual(named(fresh, 2));
    expect(
      ofLane('slow')
        .map((each) => `${each.subscriptionId}#${each.generation}`)
        .toSorted(),
    ).toEqual(named(failed, 2));
    expect(process.taken[0]!.chunk.catalogueVersion).toBe(await test.catalogueVersion());
  });

  it('hands out more than one batch', async () => {
    await process.work();
    await test.accept(2000, { state: 'waiting', delayMs: 0 });
    expect(await process.dispatcher.dispatchDue()).toBe(2000);
    await eventually(() => process.deliveries.length === 2000);
    expect(new Set(process.deliveries).size).toBe(2000);
  });

  it('leaves what waits where it is while nothing is due', async () => {
    await process.work();
    await test.accept(3, { state: 'waiting', delayMs: hourMs });
    expect(await process.dispatcher.dispatchDue()).toBe(0);
    expect(await process.dispatcher.recover()).toBe(0);
    expect(process.taken).toEqual([]);
  });

  it('leaves the work in the ledger while the queue accepts nothing', async () => {
    const [delivery] = await test.accept(1, { state: 'waiting', delayMs: 0 });
    await process.queue.close();
    expect(await process.dispatcher.dispatchDue()).toBe(0);
    expect(await test.row(delivery!)).toMatchObject({ state: 'waiting', generation: 1 });
  });

  it('brings back what the queue lost, and the older message of it counts no more', async () => {
    await process.work();
    const lost = await test.accept(3); // committed, and then nothing was published
    await test.age(lost, hourMs);
    expect(await process.dispatcher.recover()).toBe(3);
    expect(await process.dispatcher.dispatchDue()).toBe(3);
    await eventually(() => process.deliveries.length === 3);
    expect(process.deliveries.toSorted()).toEqual(named(lost, 2));
    expect(await test.leases.stillQueued(lost)).toEqual([]);
    expect(await process.dispatcher.recover()).toBe(0);
  });

  it('does not queue a second time what stands in line behind a backlog', async () => {
    await process.work(1);
    const backlog = await test.accept(300);
    const { queuedAt } = await test.ledger.accept(await test.catalogueVersion(), [], { state: 'queued', owner: null });
    const queued = backlog.map((each) => ({ ...each, body: '{}' }));
    expect(await process.enqueuer.enqueue('due', queued, 1, queuedAt)).toBe(0);
    await eventually(async () => (await process.queue.depth('due')) === 4);
    await test.age(backlog, hourMs);
    expect(await process.dispatcher.recover()).toBe(0);
    expect(await process.dispatcher.dispatchDue()).toBe(0);
    expect(await process.queue.depth('due')).toBe(4);
    expect((await test.row(backlog[299]!))!).toMatchObject({ state: 'queued', generation: 1 });
  });

  describe('when a process died that may not have published what it had committed', () => {
    let laterMs = 0;
    beforeEach(async () => {
      laterMs = 0;
      jest.spyOn(test.heartbeat, 'ledgerNow').mockImplementation(() => Date.now() + laterMs);
      await test.sql('DELETE FROM process');
    });
    afterEach(() => {
      jest.restoreAllMocks();
    });

    const lookAtTheStart = async () => {
      laterMs = -60_000;
      await process.dispatcher.recover();
      laterMs = 0;
      await process.dispatcher.recover();
    };

    it('brings it back once the workers are past it, long before its lease ends', async () => {
      await lookAtTheStart();
      await process.work();
      const { end } = await test.startProcess();
      const lost = await test.accept(3);
      laterMs = 60_000;
      expect(await process.dispatcher.recover()).toBe(0); // nobody died
      await end();
      laterMs = 0;
      expect(await process.dispatcher.recover()).toBe(0); // it may be on its way
      laterMs = 11_000;
      expect(await process.dispatcher.recover()).toBe(3);
      expect(await process.dispatcher.dispatchDue()).toBe(3);
      await eventually(() => process.deliveries.length === 3);
      expect(process.deliveries.toSorted()).toEqual(named(lost, 2));
      laterMs = 60_000;
      expect(await process.dispatcher.recover()).toBe(0);
    });

    it('brings it back also when it died before this dispatcher began', async () => {
      await test.accept(3);
      expect(await process.dispatcher.recover()).toBe(0);
      laterMs = 11_000;
      expect(await process.dispatcher.recover()).toBe(3);
    });

    it('looks after every one of several that die one after the other, and any dispatcher does', async () => {
      await lookAtTheStart();
      const another = new Dispatcher(test.leases, process.queue, process.enqueuer, test.heartbeat);
      for (const dispatcher of [process.dispatcher, another, process.dispatcher]) {
        await test.accept(2);
        laterMs = 0;
        const { id, end } = await test.startProcess();
        await end();
        expect(await dispatcher.recover()).toBe(0);
        laterMs = 10_050; // just enough, so that the next death is after what this look clears
        expect(await dispatcher.recover()).toBe(2);
        await test.sql('DELETE FROM process WHERE id = $1', [id]);
      }
    });

    it('does not queue a second time what still stands in line', async () => {
      await process.work(1);
      const backlog = await test.accept(300);
      const queued = backlog.map((each) => ({ ...each, body: '{}' }));
      await process.enqueuer.enqueue('due', queued, 1, Date.now());
      await eventually(async () => (await process.queue.depth('due')) === 4);
      await process.dispatcher.recover();
      laterMs = 60_000;
      expect(await process.dispatcher.recover()).toBe(0);
      expect(await process.dispatcher.dispatchDue()).toBe(0);
    });

    it('does not take for lost what a worker has taken since its last report', async () => {
      await lookAtTheStart();
      await test.accept(3); // in the hand of a worker that has not said so
      await (await test.startProcess()).end();
      laterMs = 60_000;
      const looking = process.dispatcher.recover();
      await test.leases.recordProgress([{ lane: 'due', newestTaken: Date.now(), oldestInHand: Date.now() - 5000 }]);
      expect(await looking).toBe(0);
    });
  });

  it('frees what a process had in hand that ended', async () => {
    await process.work();
    const { id, end } = await test.startProcess();
    const [inHand, done] = await test.accept(2);
    await test.leases.own([inHand!, done!], id);
    await test.ledger.settle(delivered(done!));
    await process.dispatcher.recover();
    expect(await process.dispatcher.dispatchDue()).toBe(0);
    await end();
    await process.dispatcher.recover();
    expect(await process.dispatcher.dispatchDue()).toBe(1);
    await eventually(() => process.deliveries.length === 1);
    expect(process.deliveries).toEqual(named([inHand!], 2));
  });
});

describe('four dispatchers at once', () => {
  it('hand out every delivery once, what is due and what was lost', async () => {
    const prepared = await real.prepare();
    const settings = { ...prepared.settings, DATABASE_POOL_SIZE: '4' };
    const processes = await Promise.all([0, 1, 2, 3].map(() => TestProcess.open(settings)));
    const [first] = processes as [TestProcess, ...TestProcess[]];
    await first.work();
    const due = await first.test.accept(3000, { state: 'waiting', delayMs: 0 });
    const lost = await first.test.accept(500);
    await first.test.age(lost, hourMs);
    const rounds = await Promise.all(
      processes.flatMap(({ dispatcher }) =>
        [0, 1].map(async () => {
          await dispatcher.recover();
          return dispatcher.dispatchDue();
        }),
      ),
    );
    const rest = await first.dispatcher.dispatchDue();
    expect(rounds.reduce((sum, count) => sum + count, rest)).toBe(3500);
    await eventually(() => first.deliveries.length >= 3500);
    expect(first.deliveries.toSorted()).toEqual(named([...due, ...lost], 2));
    for (const each of processes) await each.close();
    await prepared.release();
  });
});

describe('a queue that was made anew', () => {
  it('is given again, at once, what the former one held', async () => {
    const prepared = await real.prepare();
    const process = await TestProcess.open(prepared.settings);
    const queues = createQueuePrefix();
    const held = await process.test.accept(5);
    await process.test.age(held, 10_000);
    const anew = new RabbitMqDeliveryQueue(queues.url, queues.prefix, 1000);
    const enqueuer = new Enqueuer(anew, process.test.leases, process.test.heartbeat);
    await anew.open();
    await eventually(async () => (await process.test.state(held[4]!)) === 'waiting');
    expect(enqueuer.isAccepting).toBe(true);
    await anew.close();
    await process.close();
    await queues.remove();
    await prepared.release();
  });
});

describe('the enqueuer', () => {
  it('puts back into the ledger what the queue refuses', async () => {
    const prepared = await real.prepare();
    const process = await TestProcess.open(prepared.settings);
    const deliveries = await process.test.accept(100);
    await process.queue.close();
    const queued = deliveries.map((each) => ({ ...each, body: '{}' }));
    expect(await process.enqueuer.enqueue('due', queued, 1, Date.now())).toBe(100);
    const rows = await Promise.all(deliveries.map((each) => process.test.row(each)));
    expect(new Set(rows.map((row) => row!.state))).toEqual(new Set(['waiting']));
    expect(rows.every((row) => row!.due_in_ms! <= 1000)).toBe(true);
    await process.close();
    await prepared.release();
  });
});
