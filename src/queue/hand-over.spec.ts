import { beforeEach, describe, expect, it } from 'vitest';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { Statement } from '../infra/postgres/statement.js';
import { unpaced } from '../../test/support/unpaced.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { longestInlineBody, type HandedOut } from '../ledger/delivery.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { InProcessDeliveryQueue } from './delivery-queue.in-process.js';
import { Enqueuer } from './enqueuer.service.js';
import { HandOver } from './hand-over.service.js';
import { noSiblings } from '../supervision/siblings.js';

const most = 5;
/** With their texts. */
const mostBytes = 10_000;
/** Of one notification. */
const together = 5;
const deliveries = (count: number): HandedOut[] =>
  Array.from({ length: count }, (_, nr) =>
    newDelivery({
      notificationId: '019aa000-0000-7000-8000-000000000001',
      subscriptionId: `00000000-0000-4000-8000-00000000000${nr}`,
      body: null,
    }),
  );

const inMemory = () => ({ deliveries: most, bytes: mostBytes });
/** Notifications, each with so many deliveries. */
const matched = (...counts: number[]) => counts.map((count) => matchedWith(count, ''));
const matchedWith = (count: number, body: string) => ({
  subscriptionIds: Array.from({ length: count }, () => 'any'),
  body,
});

describe('the way of accepted deliveries', () => {
  let handOver: HandOver;
  let queue: InProcessDeliveryQueue;
  let written: string[];
  /** Deliveries that the worker was handed and is not done with. */
  let inHand: { count: number; done: () => void }[];

  beforeEach(async () => {
    [written, inHand] = [[], []];
    const postgres = { query: async ({ name }: Statement) => void written.push(name) } as unknown as Postgres;
    const heartbeat = { processId: 'this process' } as unknown as Heartbeat;
    queue = new InProcessDeliveryQueue('the queue', 10);
    handOver = new HandOver(
      new Enqueuer(queue, postgres, heartbeat, {} as LedgerClock),
      heartbeat,
      {} as LedgerClock,
      unpaced,
      noSiblings,
      { together, inMemory, sharedFrom: Infinity },
      () => 0,
    );
    // Of another worker, which is not as far.
    await queue.consume('fresh', 0, () => Promise.resolve());
  });

  const startWorker = () =>
    handOver.consume(
      ({ deliveries: { length: count } }) => new Promise<void>((done) => inHand.push({ count, done: () => done() })),
    );
  const send = (count: number) => {
    const way = handOver.wayFor(matched(count));
    way.go(deliveries(count), 1, 2);
    way.giveUp();
    return way.destination;
  };
  const toQueue = { state: 'queued', process: 'the queue' };
  const straight = { state: 'in-hand', process: 'this process', leaseMs: 15_000 };

  it('leads by the queue where this process has no worker', async () => {
    expect(send(1)).toEqual(toQueue);
    expect(await queue.depth('fresh')).toBe(1);
  });

  it('leads straight to the worker of this process, and by the queue as soon as that would have too many in memory', async () => {
    startWorker();
    expect([send(3), send(2), send(1)]).toEqual([straight, straight, toQueue]);
    expect(inHand.map(({ count }) => count)).toEqual([3, 2]);
    expect(await queue.depth('fresh')).toBe(1);
    inHand[0]!.done();
    await new Promise(setImmediate);
    expect([send(4), send(3)]).toEqual([toQueue, straight]);
  });

  it('leads by the queue for all of a batch where one notification has more than one worker should send', () => {
    const heartbeat = { processId: 'this process' } as unknown as Heartbeat;
    const enqueuer = new Enqueuer(queue, {} as Postgres, heartbeat, {} as LedgerClock);
    handOver = new HandOver(
      enqueuer,
      heartbeat,
      {} as LedgerClock,
      unpaced,
      noSiblings,
      { together: 2, inMemory, sharedFrom: Infinity },
      () => 0,
    );
    startWorker();
    expect(handOver.wayFor(matched(1, 3)).destination).toEqual(toQueue);
    expect(handOver.wayFor(matched(2, 2)).destination).toEqual(straight);
  });

  it('counts what is being accepted, until it is given up, and what the worker has taken from the queue', () => {
    startWorker();
    const [one, other] = [handOver.wayFor(matched(3)), handOver.wayFor(matched(3))];
    expect([one.destination, other.destination]).toEqual([straight, toQueue]);
    one.giveUp();
    one.giveUp();
    const freeMemory = handOver.occupy({ deliveries: deliveries(4), catalogueVersion: 1, queuedAt: 2 });
    expect(handOver.wayFor(matched(1, 1)).destination).toEqual(toQueue);
    freeMemory();
    expect(handOver.wayFor(matched(most)).destination).toEqual(straight);
  });

  it('leads by the queue as soon as the worker would have too many bytes in memory', () => {
    startWorker();
    const kilobytes = 'x'.repeat(4000);
    const one = handOver.wayFor([matchedWith(1, kilobytes)]);
    expect(handOver.wayFor([matchedWith(1, kilobytes), matchedWith(1, kilobytes)]).destination).toEqual(toQueue);
    const other = handOver.wayFor([matchedWith(1, kilobytes)]);
    expect([one.destination, other.destination]).toEqual([straight, straight]);
    expect(handOver.wayFor(matched(3)).destination).toEqual(toQueue);
    expect(handOver.wayFor(matched(2)).destination).toEqual(straight);
  });

  it('does not count texts that the worker reads when it needs them', () => {
    startWorker();
    expect(handOver.wayFor([matchedWith(1, 'x'.repeat(longestInlineBody + 1))]).destination).toEqual(straight);
    expect(
      handOver.wayFor([matchedWith(1, 'x'.repeat(longestInlineBody)), matchedWith(1, 'x'.repeat(2000))]).destination,
    ).toEqual(toQueue);
  });

  it('counts the bytes of a text, not its characters', () => {
    startWorker();
    expect(handOver.wayFor([matchedWith(1, 'é'.repeat(4000)), matchedWith(1, 'x'.repeat(2000))]).destination).toEqual(
      toQueue,
    );
    const longer = matchedWith(1, 'é'.repeat(longestInlineBody / 2 + 1)); // the worker reads it
    expect(handOver.wayFor([longer, matchedWith(1, 'x'.repeat(2000))]).destination).toEqual(straight);
  });

  it('does not count the texts of notifications without deliveries', () => {
    startWorker();
    const without = matchedWith(0, 'x'.repeat(8000));
    expect(handOver.wayFor([without, without, matchedWith(1, '')]).destination).toEqual(straight);
  });

  it('counts those that were accepted, where there are fewer than there might have been', () => {
    startWorker();
    const way = handOver.wayFor(matched(most));
    way.go(deliveries(1), 1, 2);
    way.giveUp();
    expect(handOver.wayFor(matched(most - 1)).destination).toEqual(straight);
  });

  it('leads to the dispatcher while the queue would refuse; the worker of this process is handed all the same', async () => {
    startWorker();
    await queue.close();
    expect(handOver.wayFor(matched(most + 1)).destination).toEqual({ state: 'waiting', delayMs: 1000 });
    expect(handOver.wayFor(matched(most)).destination).toEqual(straight);
  });

  it('leads back to the ledger where the worker stopped while they were accepted, and by the queue after that', async () => {
    const consumption = startWorker();
    send(1);
    const way = handOver.wayFor(matched(1));
    let hasStopped = false;
    const stopping = consumption.stop().then(() => (hasStopped = true));
    way.go(deliveries(1), 1, 2);
    expect(send(1)).toEqual(toQueue);
    await new Promise(setImmediate);
    expect(written).toEqual(['put-back']);
    expect(hasStopped).toBe(false);
    inHand[0]!.done();
    await stopping;
    expect(inHand).toHaveLength(1);
  });
});
