import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { systemClock, type Clock } from '../infra/clock.js';
import { readSettings } from '../config/settings.js';
import { Admission } from '../endpoints/admission.service.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import type { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import type { Idempotency } from '../idempotency/idempotency.service.js';
import type { Delivery, HandedOut, HeldReason } from '../ledger/delivery.js';
import type { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Chunk } from '../queue/chunk.js';
import type { Lane } from '../queue/delivery-queue.js';
import { InProcessDeliveryQueue } from '../queue/delivery-queue.in-process.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { BacklogPace } from '../queue/backlog-pace.service.js';
import { HandOver } from '../queue/hand-over.service.js';
import type { QueueProgress } from '../queue/queue-progress.service.js';
import { LargeBodies } from './large-bodies.js';
import type { LateLocks } from './late-locks.service.js';
import type { ChunkLoader, Loaded, LoadedChunk } from './chunk-loader.service.js';
import type { Decider } from './decider.service.js';
import { DeliverService } from './deliver.service.js';
import type { DeliveryRecords } from './delivery-records.service.js';
import { BodyMemory } from './body-memory.js';
import type { Caller } from './authorized-call.js';
import type { Sender } from './sender.service.js';
import type { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { WebhookClient, WebhookResponse } from './webhook-client.js';
import { Stopping } from './until-it-works.js';
import { Worker } from './worker.service.js';
import { eventually } from '../../test/support/eventually.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { answered as responseOf } from '../../test/support/responses.js';
import { unpaced } from '../../test/support/unpaced.js';
import { untraced } from '../../test/support/untraced.js';
import { noSiblings } from '../../test/support/no-siblings.js';
import { settled } from '../../test/support/settled.js';

Logger.overrideLogger(false);

const chunks = 20;
const deliveriesEach = 10;
const size = 1000;
const sentTogether = 7;
/** A subscription with a receiver of its own. */
const hanging = 'hanging';
/** Another one, whose receiver takes one call at a time. */
const slow = 'slow';

const heartbeat = { processId: 'process' } as unknown as Heartbeat;
const ledgerClock = {} as LedgerClock;
/** Of a worker that is handed deliveries. */
const mostInMemory = 12;

/** A notification that so many deliveries are about to be accepted of. */
const matched = { subscriptionIds: Array.from({ length: deliveriesEach }, () => 'any'), body: '' };

const large = (nr: number): HandedOut => newDelivery({ notificationId: `notification ${nr}`, body: null });

interface Parts {
  load: (chunk: Chunk) => Promise<LoadedChunk>;
  /** Without an answer its call is abandoned. */
  send?: (delivery: Loaded) => Promise<WebhookResponse | void>;
  abandon?: () => void;
  finish?: (lane: Lane, queuedAt: number) => void;
  hold?: (delivery: HandedOut, reason: HeldReason) => Promise<void>;
  keep?: (deliveries: Delivery[]) => Promise<void>;
  pace?: BacklogPace;
  clock?: Clock;
  /** Of a queue that other processes take from too; the test decides whether this one reaches Postgres. */
  shared?: { hasExpired: boolean };
}

const done = () => Promise.resolve();

/** A worker on a queue of its own, of which the test plays the loader and the sender. */
async function start(parts: Parts) {
  const { load, send = done, abandon = () => {}, finish = () => {}, hold = done, keep = done } = parts;
  const { pace = unpaced, clock = systemClock, shared } = parts;
  const config = { settings: readSettings({}) };
  const noneOpen = { of: () => undefined, all: new Map() } as unknown as OpenEndpoints;
  const admission = new Admission(config, new HoldRule(noneOpen), noneOpen, ledgerClock, systemClock);
  const lock = { seal: done, release: done };
  const response = { kind: 'abandoned', durationMs: 0, wasSent: false };
  const find = (id: string) => {
    const callbackUrl = id === hanging || id === slow ? `http://${id}/` : 'http://receiver/';
    return { callbackUrl, credentials: {}, maxConcurrency: id === slow ? 1 : null, ratePerSecond: null };
  };
  const deliver = new DeliverService(
    config,
    systemClock,
    { find } as unknown as SubscriptionDirectory,
    { operation: () => ({ acquire: () => Promise.resolve({ kind: 'acquired', lock }) }) } as unknown as Idempotency,
    admission,
    {
      send: (delivery: Loaded, _subscription: unknown, _guarantee: unknown, caller: Caller) => {
        caller.begun();
        return send(delivery).then((answer) => answer ?? response);
      },
    } as unknown as Sender,
    { endingOf: () => undefined, decide: () => Promise.resolve({ state: 'waiting' }) } as unknown as Decider,
    { settle: done, hold, isStillQueued: () => Promise.resolve(true) } as unknown as DeliveryRecords,
    { mayWait: () => false } as unknown as LateLocks,
  );
  const inProcess = new InProcessDeliveryQueue('process', 1000);
  const queue = shared ? Object.assign(inProcess, { process: null }) : inProcess;
  const enqueuer = new Enqueuer(queue, {} as Postgres, heartbeat, ledgerClock);
  const handOver = new HandOver(
    enqueuer,
    heartbeat,
    ledgerClock,
    pace,
    noSiblings,
    {
      together: mostInMemory,
      inMemory: () => ({ deliveries: mostInMemory, bytes: Infinity }),
      sharedFrom: Infinity,
    },
    () => systemClock.now(),
  );
  const worker = new Worker(
    clock,
    queue,
    handOver,
    pace,
    { take: () => {}, finish, giveBackAll: () => {} } as unknown as QueueProgress,
    { load } as unknown as ChunkLoader,
    deliver,
    admission,
    { keep } as unknown as DeliveriesInHand,
    { abandonAll: abandon, close: () => Promise.resolve() } as unknown as WebhookClient,
    Object.assign(shared ?? { hasExpired: true }, heartbeat),
    ledgerClock,
    untraced,
  );
  await worker.onApplicationBootstrap();
  return { worker, queue, handOver, admission };
}

const memoryOf = (bytes: number, origin = bytes) =>
  new BodyMemory(bytes, { origin, unproven: bytes, unprovenOrigin: origin });
const sizesOf = (deliveries: HandedOut[]) => new Map(deliveries.map(({ notificationId }) => [notificationId, size]));
/** A loader of chunks whose texts are all large. */
const withLarge =
  (memory: BodyMemory, read = () => Promise.resolve(Buffer.alloc(size))): Parts['load'] =>
  ({ deliveries }) =>
    Promise.resolve({ deliveries, bodies: new LargeBodies(sizesOf(deliveries), memory, read) });

/** Calls that take until `answer` is called. */
function unanswered() {
  let answer!: () => void;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  return { answered, answer };
}

describe('a worker', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('has no more large texts in memory than it may, however many chunks it has taken, and sends them all', async () => {
    const memory = memoryOf(sentTogether * size);
    let inMemory = 0;
    let most = 0;
    const read = () => {
      most = Math.max(most, ++inMemory);
      return Promise.resolve(Buffer.alloc(size));
    };
    const sent: string[] = [];
    const { worker, queue } = await start({
      load: withLarge(memory, read),
      send: async ({ notificationId, body }) => {
        await settled();
        sent.push(`${notificationId}: ${body.length}`);
        inMemory--;
      },
    });
    for (let chunk = 0; chunk < chunks; chunk++) {
      const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => large(chunk * deliveriesEach + nr));
      await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries });
    }
    await eventually(() => sent.length === chunks * deliveriesEach);
    await worker.onModuleDestroy();
    const all = Array.from({ length: chunks * deliveriesEach }, (_, nr) => `notification ${nr}: ${size}`);
    expect(sent.toSorted()).toEqual(all.toSorted());
    expect(most).toBe(sentTogether);
  });

  it('takes what is for others out of the queue before it has sent all of a slow endpoint that nothing else was asked for', async () => {
    const many = 80;
    const held: HeldReason[] = [];
    /** When the other one was sent: from then on the slow one is not alone. */
    let heldBefore: HeldReason[] | undefined;
    const { worker, queue, admission } = await start({
      load: async ({ deliveries }) => ({ deliveries, bodies: {} as LargeBodies }),
      send: async ({ subscriptionId }) => {
        if (subscriptionId === slow) await pause(25);
        else heldBefore = [...held];
        return responseOf(204);
      },
      hold: async (_, reason) => void held.push(reason),
    });
    admission.onApplicationBootstrap();
    const publish = (subscriptionId: string, count: number) =>
      queue.publish('fresh', {
        catalogueVersion: 0,
        queuedAt: 0,
        deliveries: Array.from({ length: count }, () => newDelivery({ subscriptionId, body: Buffer.from('{}') })),
      });
    for (let chunk = 0; chunk < many; chunk++) await publish(slow, 12);
    await publish('any', 1);
    await eventually(() => heldBefore !== undefined);
    expect(heldBefore).toContain('endpoint-busy');
    admission.onModuleDestroy();
    await worker.onModuleDestroy();
  });

  it('sends the large texts of others although an origin keeps as many as it may', async () => {
    const memory = memoryOf(sentTogether * size, 2 * size);
    const sent: string[] = [];
    const { answered, answer } = unanswered();
    const { worker, queue } = await start({
      load: withLarge(memory),
      send: ({ notificationId, subscriptionId }) => {
        sent.push(notificationId);
        return subscriptionId === hanging ? answered : Promise.resolve();
      },
    });
    const toHanging = [0, 1, 2, 3].map((nr) => ({ ...large(nr), subscriptionId: hanging }));
    const toOthers = [4, 5, 6, 7].map(large);
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries: toHanging });
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries: toOthers });
    await eventually(() => sent.length === 6);
    expect(sent.toSorted()).toEqual([0, 1, 4, 5, 6, 7].map((nr) => `notification ${nr}`));
    answer();
    await eventually(() => sent.length === 8);
    await worker.onModuleDestroy();
  });

  it('sends no more large texts to endpoints that are not proven than these may keep, however many they are', async () => {
    const memory = new BodyMemory(10 * size, { origin: 10 * size, unproven: 2 * size, unprovenOrigin: 10 * size });
    const sent: string[] = [];
    const { answered, answer } = unanswered();
    const { worker, queue } = await start({
      load: withLarge(memory),
      send: ({ notificationId }) => {
        sent.push(notificationId);
        return answered;
      },
    });
    const deliveries = [
      { ...large(0), subscriptionId: hanging },
      large(1),
      { ...large(2), subscriptionId: hanging },
      large(3),
    ];
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries });
    await eventually(() => sent.length === 2);
    for (let turn = 0; turn < 10; turn++) await settled();
    expect(sent).toHaveLength(2);
    answer();
    await eventually(() => sent.length === 4);
    await worker.onModuleDestroy();
  });

  it('that abandons its calls reads no more large texts, and begins nothing with one that it was reading', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const memory = memoryOf(2 * size);
    let read = 0;
    let arrive!: (text: Buffer) => void;
    const reading = new Promise<Buffer>((resolve) => (arrive = resolve));
    const sent: string[] = [];
    let abandon!: () => void;
    const { worker, queue } = await start({
      load: ({ deliveries }) => {
        const readNext = () => (++read === 2 ? reading : Promise.resolve(Buffer.alloc(size)));
        return Promise.resolve({ deliveries, bodies: new LargeBodies(sizesOf(deliveries), memory, readNext) });
      },
      send: ({ notificationId }) => {
        sent.push(notificationId);
        return new Promise((_, reject) => (abandon = () => reject(new Stopping())));
      },
      abandon: () => abandon(),
    });
    const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => large(nr));
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries });
    await settled();
    const stopped = worker.onModuleDestroy();
    await vi.advanceTimersByTimeAsync(15_000);
    arrive(Buffer.alloc(size));
    await stopped;
    expect([sent, read]).toEqual([['notification 0'], 2]);
  });

  it('that stops holds at once what waits for room or is still to come, and finishes the calls under way', async () => {
    const held: string[] = [];
    const under: (() => void)[] = [];
    const loads: (() => void)[] = [];
    const { worker, queue } = await start({
      load: async ({ deliveries, queuedAt }) => {
        if (queuedAt === 1) await new Promise<void>((resolve) => loads.push(resolve));
        const whole = deliveries.map((delivery) => ({ ...delivery, body: Buffer.alloc(size) }));
        return { deliveries: whole, bodies: {} as LargeBodies };
      },
      send: () => new Promise((resolve) => under.push(resolve)),
      hold: async ({ notificationId }, reason) => void held.push(`${notificationId}: ${reason}`),
    });
    const chunkOf = (from: number, queuedAt: number) => {
      const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => large(from + nr));
      return { catalogueVersion: 0, queuedAt, deliveries };
    };
    await queue.publish('fresh', chunkOf(0, 0));
    await queue.publish('fresh', chunkOf(10, 1));
    await eventually(() => under.length === 8 && loads.length === 1); // the window of an unknown endpoint
    const stopped = worker.onModuleDestroy();
    await settled();
    expect(held).toEqual(['notification 8: endpoint-busy', 'notification 9: endpoint-busy']);
    loads[0]!();
    await eventually(() => held.length === 12);
    for (const answer of under) answer();
    await stopped;
    expect(under).toHaveLength(8);
  });

  it('takes a chunk without waiting for calls that keep as many as the queue hands over', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const sent: string[] = [];
    const kept: string[] = [];
    const { answered, answer } = unanswered();
    const { worker, queue } = await start({
      load: ({ deliveries }) =>
        Promise.resolve({
          deliveries,
          bodies: new LargeBodies(sizesOf(deliveries), memoryOf(1000 * size), () => Promise.resolve(Buffer.alloc(1))),
        }),
      send: ({ notificationId }) => {
        sent.push(notificationId);
        return sent.length < 80 ? answered : Promise.resolve();
      },
      keep: (deliveries) => Promise.resolve(void kept.push(...deliveries.map(({ notificationId }) => notificationId))),
    });
    for (let nr = 0; nr < 100; nr++)
      await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries: [large(nr)] });
    for (let turns = 0; turns < 1000 && kept.length < 52; turns++) await settled();
    expect(kept).toEqual(Array.from({ length: 52 }, (_, nr) => `notification ${nr}`)); // all but three quarters of 64
    answer();
    for (let turns = 0; turns < 1000 && sent.length < 100; turns++) await settled();
    expect(sent).toHaveLength(100);
    await worker.onModuleDestroy();
  });

  describe('that has not reached Postgres for the lifetime of its heartbeat', () => {
    const bodies = {} as LargeBodies;
    const body = Buffer.alloc(size);
    /** Its pauses pass with the time of the test: what is tried again has been. */
    const clock: Clock = {
      now: () => systemClock.now(),
      pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    };
    const chunk: Chunk = {
      catalogueVersion: 0,
      queuedAt: 7,
      deliveries: [newDelivery({ body }), newDelivery({ body })],
    };

    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    });

    it('leaves the chunks that it cannot load to others, takes no more, and takes again when it reaches it', async () => {
      const shared = { hasExpired: false };
      let isAway = true;
      const loaded: boolean[] = [];
      const sent: string[] = [];
      const finished: number[] = [];
      const { worker, queue } = await start({
        shared,
        clock,
        load: ({ deliveries }) => {
          loaded.push(!isAway);
          return isAway ? Promise.reject(new Error('no way to Postgres')) : Promise.resolve({ deliveries, bodies });
        },
        send: async ({ notificationId }) => void sent.push(notificationId),
        finish: (_, queuedAt) => finished.push(queuedAt),
      });
      await queue.publish('due', chunk);
      await vi.advanceTimersByTimeAsync(3000);
      expect(await queue.depth('due')).toBe(0);
      shared.hasExpired = true;
      await vi.advanceTimersByTimeAsync(1000);
      expect(await queue.depth('due')).toBe(1);
      expect(await queue.publish('due', chunk)).toBe('refused'); // nobody takes it
      isAway = false;
      await vi.advanceTimersByTimeAsync(10_000);
      expect([loaded.includes(true), sent, finished]).toEqual([false, [], []]);
      shared.hasExpired = false;
      await vi.advanceTimersByTimeAsync(2000);
      expect(await queue.depth('due')).toBe(0);
      expect(sent).toEqual(chunk.deliveries.map(({ notificationId }) => notificationId));
      expect(finished).toEqual([7]);
      vi.useRealTimers();
      await worker.onModuleDestroy();
    });

    it('gives back what it has begun too, and does not write any more that it has that in hand', async () => {
      const shared = { hasExpired: false };
      let isAway = true;
      const kept: number[] = [];
      const { answered, answer } = unanswered();
      const { worker, queue } = await start({
        shared,
        clock,
        load: ({ deliveries }) => Promise.resolve({ deliveries, bodies }),
        send: () => answered,
        keep: async (deliveries) => {
          if (isAway) throw new Error('no way to Postgres');
          kept.push(deliveries.length);
        },
      });
      await queue.publish('due', chunk);
      await vi.advanceTimersByTimeAsync(3000);
      shared.hasExpired = true;
      await vi.advanceTimersByTimeAsync(1000);
      expect(await queue.depth('due')).toBe(1);
      isAway = false;
      await vi.advanceTimersByTimeAsync(10_000);
      expect(kept).toEqual([]);
      answer();
      vi.useRealTimers();
      await worker.onModuleDestroy();
    });

    it('goes on with what is in its own memory', async () => {
      let loads = 0;
      const { worker, queue } = await start({
        load: ({ deliveries }) => {
          loads++;
          return Promise.resolve({ deliveries, bodies });
        },
      });
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await queue.publish('due', chunk)).toBe('confirmed');
      await vi.advanceTimersByTimeAsync(1000);
      expect(loads).toBe(1);
      vi.useRealTimers();
      await worker.onModuleDestroy();
    });
  });

  it('is done with a chunk that cannot be loaded, for the position of the workers', async () => {
    const finished: number[] = [];
    const { worker, queue } = await start({
      load: () => Promise.reject(Object.assign(new Error('value out of range'), { code: '22003' })),
      finish: (_, queuedAt) => finished.push(queuedAt),
    });
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 7, deliveries: [large(0)] });
    await settled();
    expect(finished).toEqual([7]);
    await worker.onModuleDestroy();
  });

  it('keeps what it was handed and has not settled within five seconds under the lease of all that is in hand, also what waits for room', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const kept: string[][] = [];
    const answers: (() => void)[] = [];
    const { worker, handOver } = await start({
      load: ({ deliveries }) => Promise.resolve({ deliveries, bodies: {} as LargeBodies }),
      send: () => new Promise((resolve) => answers.push(resolve)),
      keep: async (deliveries) => void kept.push(deliveries.map(({ notificationId }) => notificationId)),
    });
    const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => ({ ...large(nr), body: Buffer.alloc(size) }));
    handOver.wayFor([matched]).go(deliveries, 0, 0);
    await settled();
    answers[0]!(); // the window of an unknown endpoint had room for eight
    await settled();
    expect([answers.length, kept]).toEqual([9, []]);
    await vi.advanceTimersByTimeAsync(4999);
    expect(kept).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(kept).toEqual([deliveries.slice(1).map(({ notificationId }) => notificationId)]);
    for (const answer of answers) answer();
    await settled();
    answers.at(-1)!();
    await worker.onModuleDestroy();
    expect(kept).toHaveLength(1);
  });

  it('has what it took from the queue in memory when it is asked whether it may be handed more', async () => {
    const loads: (() => void)[] = [];
    const { worker, queue, handOver } = await start({
      load: async () => {
        await new Promise<void>((resolve) => loads.push(resolve));
        return { deliveries: [], bodies: {} as LargeBodies };
      },
    });
    const stateOfWay = () => {
      const way = handOver.wayFor([matched]);
      way.giveUp();
      return way.destination.state;
    };
    const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => large(nr));
    expect(stateOfWay()).toBe('in-hand');
    await queue.publish('slow', { catalogueVersion: 0, queuedAt: 0, deliveries });
    expect(stateOfWay()).toBe('in-hand');
    await queue.publish('fresh', { catalogueVersion: 0, queuedAt: 0, deliveries });
    expect(stateOfWay()).toBe('queued');
    await eventually(() => loads.length === 2);
    for (const load of loads) load();
    await settled();
    expect(stateOfWay()).toBe('in-hand');
    await worker.onModuleDestroy();
  });

  it('takes no more of a backlog than the queue hands over, while that waits for its turn', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const idle = { process: 0, machine: 0 };
    const heartbeat = { noteFresh: () => {}, isOtherFresh: true };
    const pace = new BacklogPace(
      heartbeat,
      () => 1,
      () => 0,
      () => idle,
    );
    let loads = 0;
    const answers: (() => void)[] = [];
    const { worker, queue } = await start({
      pace,
      load: async ({ deliveries }) => {
        loads++;
        return { deliveries, bodies: {} as LargeBodies };
      },
      send: () => new Promise((resolve) => answers.push(resolve)),
    });
    const deliveries = Array.from({ length: deliveriesEach }, (_, nr) => ({ ...large(nr), body: Buffer.alloc(size) }));
    for (let nr = 0; nr < 20; nr++) await queue.publish('due', { catalogueVersion: 0, queuedAt: 0, deliveries });
    for (let round = 0; round < 10; round++) await settled();
    expect(loads).toBe(8);
    let hasStopped = false;
    const stopped = worker.onModuleDestroy().then(() => (hasStopped = true));
    while (!hasStopped) {
      for (const give of answers.splice(0)) give();
      await settled();
    }
    await stopped;
  });
});
