import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { EntityManager } from 'typeorm';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { ChunkLoader } from '../../src/delivery/chunk-loader.service.js';
import { Dispatcher } from '../../src/dispatching/dispatcher.service.js';
import { systemClock, type Clock } from '../../src/infra/clock.js';
import type { Delivery, DeliveryState } from '../../src/ledger/delivery.js';
import { findNewestHeld, noteDrop } from '../../src/ledger/drop-held.js';
import {
  endDeliveries,
  forgetEnding,
  noteEndings,
  readEndings,
  withdrawEndings,
  type Ending,
} from '../../src/ledger/end-of-subscription.js';
import { stillQueued } from '../../src/ledger/still-queued.js';
import { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { RabbitMqDeliveryQueue } from '../../src/queue/delivery-queue.rabbitmq.js';
import { lanes, type DeliveryQueue, type Taken } from '../../src/queue/delivery-queue.js';
import { Enqueuer } from '../../src/queue/enqueuer.service.js';
import { readQueueCreation, recordProgress, recordQueueCreation } from '../../src/queue/progress-reports.js';
import { QueuePosition } from '../../src/queue/queue-position.service.js';
import { createQueuePrefix, type TestQueues } from '../support/amqp.js';
import { eventually } from '../support/eventually.js';
import { delivered, retried, TestLedger } from '../support/ledger.js';
import { LookClock, lookForLong } from '../support/look-for-long.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';
import { insertDeliveries } from '../support/insert-deliveries.js';

Logger.overrideLogger(false);
const hourMs = 3_600_000;

const running = new AbortController().signal;
/** No worker here reports late, so the dispatcher need not wait long for reports. */
const quickClock: Clock = { now: () => systemClock.now(), pause: (ms) => systemClock.pause(Math.min(ms, 100)) };

/** One process with a dispatcher, and a worker that keeps the chunks it takes. */
class TestProcess {
  readonly taken: Taken[] = [];
  readonly dispatcher: Dispatcher;
  readonly enqueuer: Enqueuer;
  private readonly clock = Object.assign(new LookClock(), { pause: (ms: number) => quickClock.pause(ms) });
  private constructor(
    readonly test: TestLedger,
    readonly queue: DeliveryQueue,
  ) {
    this.enqueuer = new Enqueuer(queue, test.postgres, test.heartbeat, test.ledgerClock);
    const position = new QueuePosition(queue, test.postgres, test.ledgerClock, quickClock);
    this.dispatcher = new Dispatcher(
      test.postgres,
      this.enqueuer,
      position,
      new OperationalEvents(),
      test.ledgerClock,
      this.clock,
    );
  }

  lookForLong(): Promise<void> {
    return lookForLong(this.dispatcher.sendingEnded, this.clock);
  }

  handOutDue(onProgress?: (handedOut: number) => unknown): Promise<number> {
    return this.dispatcher.handOutDue(running, onProgress);
  }

  async recover(): Promise<number> {
    const { deliveries, failedRules } = await this.dispatcher.recover(running);
    if (failedRules.length > 0) throw new Error(`failed: ${failedRules.join(', ')}`);
    return deliveries;
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
    // Its queues are created now. An enqueuer that heard of it would report that all handed out before is lost.
    await queue.open();
    return new TestProcess(test, queue);
  }

  /** Takes all there is, or with a prefetch of 1 the first chunk of each lane and no more. */
  async work(prefetch = 1000): Promise<void> {
    for (const lane of lanes) {
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
    vi.restoreAllMocks();
    await process.queue.close();
    await queues?.remove();
  });
  afterAll(async () => {
    await test.heartbeat.stop();
    await test.close();
    await prepared.release();
  });

  /** @param nextAt like `objectKey`, an SQL expression */
  const insertWaiting = (count: number, nextAt: string, objectKey = 'NULL') =>
    insertDeliveries((text, values) => test.sql(text, values), {
      notifications: count,
      subscriptionIds: [randomUUID()],
      state: 'waiting',
      columns: { next_at: nextAt, object_key: `${objectKey}::uuid` },
    });

  it('hands due deliveries to the queue, once, first attempts apart from the rest', async () => {
    await process.work();
    const fresh = await test.accept(100, { state: 'waiting', delayMs: 0 });
    const failed = await test.accept(100);
    for (const each of failed) void test.settlements.settle(retried(each, 0));
    await test.settlements.drain();
    const progress: number[] = [];
    expect(await process.handOutDue((count) => progress.push(count))).toBe(200);
    expect(progress.at(-1)).toBe(200);
    expect(await process.handOutDue()).toBe(0);
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
    expect(await process.handOutDue()).toBe(2000);
    await eventually(() => process.deliveries.length === 2000);
    expect(new Set(process.deliveries).size).toBe(2000);
  });

  it('goes on from the last one that it has handed out, and does not pass over what is gone again', async () => {
    await process.work();
    await insertWaiting(300, "now() - interval '1 hour' + random() * interval '1 minute'");
    const query = vi.spyOn(test.postgres, 'query');
    expect(await process.handOutDue()).toBe(300);
    const since = query.mock.calls.flatMap(([{ name }, values]) =>
      name === 'any-due' ? [Number(values!['since_ms'])] : [],
    );
    query.mockRestore();
    const [first, second, third, ...others] = since;
    expect(first).toBe(0);
    expect(second).toBeGreaterThan((await test.now()) - hourMs - 60_000);
    expect(third).toBeGreaterThan(second!);
    expect(others).toEqual([third]);
  });

  it('hands out what has its turn once all that is due has lined up, though its moment has been looked at before', async () => {
    await process.work();
    expect(await process.handOutDue()).toBe(0);
    const nextAt = "now() - interval '1 hour' + random() * interval '1 minute'";
    await insertWaiting(1100, nextAt, `'${randomUUID()}'`); // about one object: all but one are held behind it
    expect(await process.recover()).toBe(0);
    expect(await process.handOutDue()).toBe(1);
    expect(await test.sql("SELECT FROM delivery WHERE state = 'waiting'")).toEqual([]);
  });

  it('hands out what keeps no order although lining up fails, and says that it did', async () => {
    await process.work();
    await insertWaiting(300, "now() - interval '1 hour'");
    await insertWaiting(1, "now() - interval '1 hour'", `'${randomUUID()}'`);
    const { query } = test.postgres;
    vi.spyOn(test.postgres, 'query').mockImplementation((asked, ...rest) =>
      asked.name === 'line-up' ? Promise.reject(new Error('deadlock')) : query.call(test.postgres, asked, ...rest),
    );
    expect(await process.handOutDue()).toBe(300);
    expect((await process.dispatcher.recover(running)).failedRules).toEqual(['line-up']);
    vi.restoreAllMocks();
    expect(await process.recover()).toBe(0);
    expect(await process.handOutDue()).toBe(1);
  });

  it('finds within a minute what should have been handed out long ago, and was locked or not committed then', async () => {
    await process.work();
    expect(await process.handOutDue()).toBe(0);
    await insertWaiting(1, "now() - interval '1 hour'");
    expect(await process.handOutDue()).toBe(0);
    vi.spyOn(test.ledgerClock, 'now').mockReturnValue(test.ledgerClock.now() + 60_000);
    expect(await process.handOutDue()).toBe(1);
  });

  it('finds it within a minute while it hands out a backlog, too', async () => {
    await process.work();
    await insertWaiting(300, "now() - interval '1 minute'");
    const now = vi.spyOn(test.ledgerClock, 'now');
    const handedOut = await process.handOutDue(async (count) => {
      if (count !== 128) return;
      await insertWaiting(1, "now() - interval '1 hour'");
      now.mockReturnValue(Date.now() + 61_000);
    });
    expect(handedOut).toBe(301);
  });

  it('hands out no waiting delivery before it is due', async () => {
    await process.work();
    await test.accept(3, { state: 'waiting', delayMs: hourMs });
    expect(await process.handOutDue()).toBe(0);
    expect(await process.recover()).toBe(0);
    expect(process.taken).toEqual([]);
  });

  it('hands out what is due behind a backlog of a lane that is silent, of which each waits in the ledger for the next trial', async () => {
    await process.work();
    const failed = await test.accept(300);
    for (const each of failed) void test.settlements.settle(retried(each, 0));
    await test.settlements.drain();
    const fresh = await test.accept(3, { state: 'waiting', delayMs: 0 });
    vi.spyOn(process.queue, 'isSilent').mockImplementation((lane) => lane === 'slow');
    const { publish } = process.queue;
    vi.spyOn(process.queue, 'publish').mockImplementation((lane, chunk) =>
      lane === 'slow' ? Promise.resolve('refused') : publish.call(process.queue, lane, chunk),
    );
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const begunAt = await test.now();
    expect(await process.handOutDue()).toBe(303);
    await eventually(() => process.deliveries.length === 3);
    expect(process.deliveries.toSorted()).toEqual(named(fresh, 2));
    expect(warn).not.toHaveBeenCalled();
    const waiting = await test.sql<{ next_at: Date }>("SELECT next_at FROM delivery WHERE state = 'waiting'");
    expect(waiting).toHaveLength(300);
    const soonest = Math.min(...waiting.map(({ next_at }) => next_at.getTime()));
    expect(soonest - begunAt).toBeGreaterThanOrEqual(30_000);
  });

  it('leaves deliveries in the ledger while the queue does not accept', async () => {
    const [delivery] = await test.accept(1, { state: 'waiting', delayMs: 0 });
    await process.queue.close();
    expect(await process.handOutDue()).toBe(0);
    expect(await test.row(delivery!)).toMatchObject({ state: 'waiting', generation: 1 });
  });

  it('brings back deliveries that the queue lost, and their older message counts no more', async () => {
    await process.work();
    const lost = await test.accept(3); // committed, and then nothing was published
    expect(await process.recover()).toBe(0); // it may be on its way
    await test.age(lost, 11_000);
    expect(await process.recover()).toBe(3);
    expect(await process.handOutDue()).toBe(3);
    await eventually(() => process.deliveries.length === 3);
    expect(process.deliveries.toSorted()).toEqual(named(lost, 2));
    expect((await stillQueued(test.postgres, lost)).deliveries).toEqual([]);
    expect(await process.recover()).toBe(0);
  });

  it('brings back a large backlog that was lost, in batches', async () => {
    const lost = await test.accept(2500);
    await test.age(lost, 11_000);
    expect(await process.recover()).toBe(2500);
  });

  it('has held deliveries that are too old due a thousand at a time, with a rest for others after each', async () => {
    await test.accept(2300);
    await test.sql(
      `UPDATE delivery SET state = 'held', held_for = 'paused', queued_at = NULL, expires_at = now() - interval '1 s'`,
    );
    const due: number[] = [];
    vi.spyOn(quickClock, 'pause').mockImplementation(async () => {
      const [row] = await test.sql<{ count: number }>(
        `SELECT count(*)::int AS count FROM delivery WHERE state = 'waiting'`,
      );
      due.push(row!.count);
    });
    const rule = process.dispatcher.rules.find(({ name }) => name === 'held-expired')!;
    expect(await process.dispatcher.apply(rule, running)).toBe(2300);
    expect(due).toEqual([1000, 2000]);
  });

  it('does not queue a delivery a second time while it waits in a backlog, however long', async () => {
    await process.work(1);
    const backlog = await test.accept(300);
    const queuedAt = await test.now();
    const queued = backlog.map((each) => ({ ...each, body: Buffer.from('{}') }));
    expect(await process.enqueuer.enqueue('due', queued, 1, queuedAt)).toBe(0);
    await eventually(async () => (await process.queue.depth('due')) === 4);
    await test.age(backlog, hourMs);
    await recordProgress(test.postgres, 'a worker', [
      { lane: 'due', newestTaken: queuedAt - hourMs, oldestUnacknowledged: queuedAt - hourMs },
    ]);
    expect(await process.recover()).toBe(0);
    expect(await process.handOutDue()).toBe(0);
    expect(await process.queue.depth('due')).toBe(4);
    expect((await test.row(backlog[299]!))!).toMatchObject({ state: 'queued', generation: 1 });
  });

  it('brings back a lost delivery although the queue is never empty, once the workers are past it', async () => {
    await process.work(1);
    const [lost] = await test.accept(1); // its process died before it published it
    const backlog = await test.accept(300);
    const queuedAt = await test.now();
    await process.enqueuer.enqueue(
      'due',
      backlog.map((each) => ({ ...each, body: Buffer.from('{}') })),
      1,
      queuedAt,
    );
    await eventually(async () => (await process.queue.depth('due')) === 4);
    await test.age([lost!], 20_000);
    const report = (newestTaken: number) =>
      recordProgress(test.postgres, 'a worker', [
        { lane: 'due', newestTaken, oldestUnacknowledged: null },
        { lane: 'slow', newestTaken: queuedAt, oldestUnacknowledged: null },
      ]);
    await report(queuedAt - 30_000);
    expect(await process.recover()).toBe(0);
    await report(queuedAt);
    expect(await process.recover()).toBe(1);
    expect(await test.state(lost!)).toBe('waiting');
    expect(await test.state(backlog[0]!)).toBe('queued');
  });

  it('does not count as lost a delivery that a worker has taken since its last report', async () => {
    const taken = await test.accept(3); // in the hand of a worker that has not said so
    await test.age(taken, 11_000);
    const looking = process.recover();
    const now = await test.now();
    await recordProgress(test.postgres, 'a worker', [
      { lane: 'due', newestTaken: now - 11_000, oldestUnacknowledged: now - 12_000 },
    ]);
    expect(await looking).toBe(0);
  });

  it('gives a new queue, at once, the deliveries of the former one, and none that were handed out since', async () => {
    const [lost, since] = await test.accept(2);
    const createdAt = await test.now();
    await test.age([lost!], 1000);
    await test.sql(`UPDATE delivery SET queued_at = now() + interval '1 s' WHERE subscription_id = $1`, [
      since!.subscriptionId,
    ]);
    await recordQueueCreation(test.postgres, createdAt);
    expect(await process.recover()).toBe(1);
    expect(await test.state(lost!)).toBe('waiting');
    expect(await process.recover()).toBe(0);
  });

  describe('after Postgres’ clock was set back by an hour', () => {
    /** One that waits in the queue, and one that the queue has lost. */
    async function waitingAndLost() {
      await process.work(1);
      const [lost, ...backlog] = await test.accept(300);
      const queuedAt = await test.now();
      const queued = backlog.map((each) => ({ ...each, body: Buffer.from('{}') }));
      expect(await process.enqueuer.enqueue('due', queued, 1, queuedAt)).toBe(0);
      await eventually(async () => (await process.queue.depth('due')) === 4);
      await test.age(backlog, 10_000);
      await test.age([lost!], 60_000);
      return { waiting: backlog[0]!, lost: lost! };
    }

    it('leaves in the queue what was handed to it since, although that was created before, and brings back what it lost', async () => {
      const { waiting, lost } = await waitingAndLost();
      await recordQueueCreation(test.postgres, (await test.now()) + hourMs);
      const now = await test.now();
      await recordProgress(test.postgres, 'a worker', [
        { lane: 'due', newestTaken: now - 30_000, oldestUnacknowledged: null },
      ]);
      expect(await process.recover()).toBe(1);
      expect([await test.state(waiting), await test.state(lost)]).toEqual(['queued', 'waiting']);
    });

    it('leaves in the queue what was handed to it since, although the workers took something before', async () => {
      const { waiting } = await waitingAndLost();
      const before = (await test.now()) + hourMs;
      const taken = { newestTaken: before, oldestUnacknowledged: before };
      await recordProgress(
        test.postgres,
        'a worker',
        lanes.map((lane) => ({ lane, ...taken })),
      );
      expect(await process.recover()).toBe(0);
      expect(await test.state(waiting)).toBe('queued');
    });
  });

  it('runs every rule although one fails, and says which', async () => {
    const { die, witness, id } = await test.startProcess();
    const [inHand] = await test.accept(1);
    const [lost] = await test.accept(1);
    await test.keepInHand([inHand!], id);
    await test.age([lost!], 11_000);
    await witness();
    await die();
    vi.spyOn(process.queue, 'depth').mockRejectedValue(new Error('not connected'));
    const { deliveries, failedRules } = await process.dispatcher.recover(running);
    expect({ deliveries, failedRules }).toEqual({ deliveries: 1, failedRules: ['queue-lost-it'] });
    vi.restoreAllMocks();
    expect(await process.recover()).toBe(1);
  });

  it('ends a long hand-out when it is told to stop, and leaves the rest in the ledger', async () => {
    await process.work();
    await test.accept(2000, { state: 'waiting', delayMs: 0 });
    const stopping = new AbortController();
    const handedOut = await process.dispatcher.handOutDue(stopping.signal, () => stopping.abort());
    expect(handedOut).toBeLessThan(2000);
    expect(await process.handOutDue()).toBe(2000 - handedOut);
  });

  it('ends every rule with many deliveries when it is told to stop, and leaves the rest to the next round', async () => {
    await process.lookForLong();
    const backlogs: Record<string, () => Promise<void>> = {
      'process-died': async () => {
        const dead = await test.startProcess();
        await test.accept(2000, { state: 'queued', process: dead.id });
        await dead.witness();
        await dead.die();
      },
      'lease-ended': async () => {
        const inHand = await test.accept(2000);
        await test.keepInHand(inHand, 'a process');
        await test.age(inHand, hourMs);
      },
      'sending-ended': async () => {
        await test.accept(2000);
        await test.sql(`UPDATE delivery SET state = 'sending', queued_at = NULL, next_at = now()`);
        await (await test.startProcess()).witness();
      },
      'subscription-ended': async () => void (await endingSubscription(2000)),
      'held-dropped': async () => {
        const subscriptionId = randomUUID();
        await insert(2000, subscriptionId, 'held', { held_for: "'paused'" });
        const newest = await findNewestHeld(test.postgres, subscriptionId);
        await test.postgres.dataSource.transaction((manager) => noteDrop(manager, subscriptionId, newest!));
      },
      'held-expired': async () => {
        await test.accept(2000);
        await test.sql(
          `UPDATE delivery SET state = 'held', held_for = 'paused', queued_at = NULL, expires_at = now() - interval '1 s'`,
        );
      },
      'queue-is-new': async () => {
        await test.age(await test.accept(2000), hourMs);
        await recordQueueCreation(test.postgres, Date.now());
      },
      'queue-lost-it': async () => test.age(await test.accept(2000), hourMs),
      'turn-not-passed': async () => {
        await test.accept(2000);
        await test.sql(
          `UPDATE delivery SET state = 'failed', queued_at = NULL, ended_at = now() - interval '1 minute',
             object_key = gen_random_uuid(), turn_nr = 0`,
        );
        await test.sql(
          'INSERT INTO turn SELECT subscription_id, object_key, notification_id, nr % 2 FROM (SELECT *, row_number() OVER () AS nr FROM delivery) AS d',
        );
      },
      'order-ended': async () => {
        const { subscriptionId } = await endingSubscription(2000, 'held');
        await test.sql(
          `UPDATE delivery SET held_for = 'order', next_at = NULL, object_key = gen_random_uuid(), turn_nr = nextval('turn_nr');
           DELETE FROM subscription_ending; INSERT INTO order_ending VALUES ('${subscriptionId}', 7)`,
        );
      },
    };
    expect(process.dispatcher.rules.map(({ name }) => name).toSorted()).toEqual(Object.keys(backlogs).toSorted());
    for (const rule of process.dispatcher.rules) {
      await test.clear();
      await backlogs[rule.name]!();
      const found = await process.dispatcher.apply(rule, AbortSignal.abort());
      expect([rule.name, found]).toEqual([rule.name, 1000]);
      expect([rule.name, await process.dispatcher.apply(rule, running)]).toEqual([rule.name, 1000]);
    }
  });

  it('ends claims whose time was over in an outage, however long it was, once their workers could report', async () => {
    const [claimed] = await test.accept();
    await test.claims.claim(claimed!, 10_000);
    await test.age([claimed!], hourMs);
    await test.sql('UPDATE process SET steady_since = now()'); // all have just reached Postgres again
    await process.lookForLong();
    expect(await process.recover()).toBe(0);
    expect(await test.state(claimed!)).toBe('sending');
    await (await test.startProcess()).witness();
    expect(await process.recover()).toBe(1);
    expect(await test.state(claimed!)).toBe('unknown');
  });

  describe('when a subscription has been deleted or disabled', () => {
    it('ends what waits for it, in batches, and nothing of another one', async () => {
      const { subscriptionId, end } = await endingSubscription(2500, 'held');
      const [other] = await test.accept(1, { state: 'waiting', delayMs: hourMs });
      expect(await process.recover()).toBe(2500);
      expect(await statesOf(subscriptionId)).toEqual([{ state: 'cancelled', error: null, count: 2500 }]);
      expect(await test.state(other!)).toBe('waiting');
      expect(await test.sql('SELECT FROM subscription_ending')).toEqual([]);
      expect(await process.recover()).toBe(0);
      await end('failed');
      expect(await process.recover()).toBe(0);
    });

    it('leaves to the workers what is queued or being sent', async () => {
      const [queued, sending] = await test.accept(2);
      await test.claims.claim(sending!, 10_000);
      for (const { subscriptionId } of [queued!, sending!])
        await inTransaction((manager) => noteEndings(manager, [subscriptionId], 'cancelled', 7));
      await process.recover();
      expect([await test.state(queued!), await test.state(sending!)]).toEqual(['queued', 'sending']);
    });

    it('is known to a worker before it sends what has lain in the queue for a while', async () => {
      const reached: number[] = [];
      const catalogue = { reach: (version: number) => Promise.resolve(reached.push(version)) } as unknown as Catalogue;
      const loader = new ChunkLoader(catalogue, test.postgres, test.ledgerClock);
      const deliveries = (await test.accept(2)).map((delivery) => ({ ...delivery, body: Buffer.from('{}') }));
      const load = (ageMs: number) =>
        loader.load({ deliveries, catalogueVersion: 0, queuedAt: test.ledgerClock.now() - ageMs }, false);
      expect((await load(0)).deliveries).toHaveLength(2);
      expect(reached).toEqual([0]);
      expect((await load(60_000)).deliveries).toHaveLength(2);
      expect(reached).toEqual([0, 0, await test.catalogueVersion()]);
    });

    it('says of a disabled one why they failed, and goes on where a dispatcher that died had stopped', async () => {
      const { subscriptionId } = await endingSubscription(1500, 'waiting', 'failed');
      const [ending] = await readEndings(test.postgres, 10);
      expect(await endDeliveries(test.postgres, ending!, 1000)).toBe(1000);
      expect(await process.recover()).toBe(500);
      const error = 'the subscription was disabled: its receiver answered 410 Gone';
      expect(await statesOf(subscriptionId)).toEqual([{ state: 'failed', error, count: 1500 }]);
    });

    it('ends nothing more once it is enabled, and forgets no later change for an earlier one', async () => {
      const { subscriptionId, end } = await endingSubscription(1500, 'waiting', 'failed');
      const [earlier] = await readEndings(test.postgres, 10);
      expect(await endDeliveries(test.postgres, earlier!, 1000)).toBe(1000);
      await inTransaction((manager) => withdrawEndings(manager, [subscriptionId]));
      expect(await endDeliveries(test.postgres, earlier!, 1000)).toBe(0);
      expect(await process.recover()).toBe(0);
      await end('cancelled', 8);
      await forgetEnding(test.postgres, earlier!);
      expect(await process.recover()).toBe(500);
    });

    it('keeps nobody waiting whose deliveries are being ended', async () => {
      const { subscriptionId } = await endingSubscription(10);
      const [row] = await test.sql<{ notification_id: string }>('SELECT notification_id FROM delivery LIMIT 1');
      const [ending] = await readEndings(test.postgres, 10);
      if (test.postgres.isEmbedded) return; // one connection: nobody can wait for another
      await inTransaction(async (manager) => {
        await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [row!.notification_id]);
        expect(await endDeliveries(test.postgres, ending!, 1000)).toBe(9);
        await forgetEnding(test.postgres, ending!);
      });
      expect(await statesOf(subscriptionId)).toContainEqual({ state: 'waiting', error: null, count: 1 });
    });

    const inTransaction = <T>(work: (manager: EntityManager) => Promise<T>): Promise<T> =>
      test.postgres.dataSource.transaction(work);

    const statesOf = (subscriptionId: string) =>
      test.sql(
        'SELECT state, last_error AS error, count(*)::int AS count FROM delivery WHERE subscription_id = $1 GROUP BY 1, 2 ORDER BY 1',
        [subscriptionId],
      );
  });

  const insert = (count: number, subscriptionId: string, state: DeliveryState, columns: Record<string, string>) =>
    insertDeliveries((text, values) => test.sql(text, values), {
      notifications: count,
      subscriptionIds: [subscriptionId],
      state,
      columns,
    });

  /** A subscription that was deleted or disabled with that many deliveries waiting. */
  async function endingSubscription(count: number, state: DeliveryState = 'waiting', ending: Ending = 'cancelled') {
    const subscriptionId = randomUUID();
    await insert(count, subscriptionId, state, { next_at: "now() + interval '1 day'" });
    const end = (become: Ending, version = 7) =>
      test.postgres.dataSource.transaction((manager) => noteEndings(manager, [subscriptionId], become, version));
    await end(ending);
    return { subscriptionId, end };
  }

  it('frees the deliveries that a dead process had in hand', async () => {
    await process.work();
    const { id, die, witness } = await test.startProcess();
    const [inHand, done] = await test.accept(2);
    await test.keepInHand([inHand!, done!], id);
    await test.settlements.settle(delivered(done!));
    await process.recover();
    expect(await process.handOutDue()).toBe(0);
    await witness();
    await die();
    await process.recover();
    expect(await process.handOutDue()).toBe(1);
    await eventually(() => process.deliveries.length === 1);
    expect(process.deliveries).toEqual(named([inHand!], 2));
  });
});

describe('four dispatchers at once', () => {
  it('hand out every delivery once, due ones and lost ones', async () => {
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
          await dispatcher.recover(running);
          return dispatcher.handOutDue(running);
        }),
      ),
    );
    const rest = await first.handOutDue();
    expect(rounds.reduce((sum, count) => sum + count, rest)).toBe(3500);
    await eventually(() => first.deliveries.length >= 3500);
    expect(first.deliveries.toSorted()).toEqual(named([...due, ...lost], 2));
    for (const each of processes) await each.close();
    await prepared.release();
  });
});

describe('a queue that was created anew', () => {
  it('is reported by the process that created it, so that any dispatcher can refill it', async () => {
    const prepared = await real.prepare();
    const process = await TestProcess.open(prepared.settings);
    const queues = createQueuePrefix();
    const lost = await process.test.accept(5);
    await process.test.age(lost, 1000);
    const anew = new RabbitMqDeliveryQueue(queues.url, queues.prefix, 1000);
    const enqueuer = new Enqueuer(anew, process.test.postgres, process.test.heartbeat, process.test.ledgerClock);
    await anew.open();
    await eventually(async () => (await readQueueCreation(process.test.postgres)) !== undefined);
    expect(await process.recover()).toBe(5);
    expect(enqueuer.isAccepting).toBe(true);
    await anew.close();
    await process.close();
    await queues.remove();
    await prepared.release();
  });
});

describe('the enqueuer', () => {
  it('puts deliveries that the queue refuses back into the ledger', async () => {
    const prepared = await real.prepare();
    const process = await TestProcess.open(prepared.settings);
    const deliveries = await process.test.accept(100);
    await process.queue.close();
    const queued = deliveries.map((each) => ({ ...each, body: Buffer.from('{}') }));
    expect(await process.enqueuer.enqueue('due', queued, 1, Date.now())).toBe(100);
    const rows = await Promise.all(deliveries.map((each) => process.test.row(each)));
    expect(new Set(rows.map((row) => row!.state))).toEqual(new Set(['waiting']));
    expect(rows.every((row) => row!.due_in_ms! <= 1000)).toBe(true);
    await process.close();
    await prepared.release();
  });
});
