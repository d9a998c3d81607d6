import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { cancel } from '../../src/ledger/cancel.js';
import { freeAfterLease } from '../../src/ledger/free-after-lease.js';
import { freeOfDeadProcesses } from '../../src/ledger/free-of-dead-processes.js';
import { anyQueuedFor, freeQueuedBefore } from '../../src/ledger/free-queued-before.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { putBack } from '../../src/ledger/put-back.js';
import { readBodies } from '../../src/ledger/read-bodies.js';
import { release } from '../../src/ledger/release.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { stillQueued } from '../../src/ledger/still-queued.js';
import { longestInlineBody, type Delivery } from '../../src/ledger/delivery.js';
import { laneOf } from '../../src/queue/delivery-queue.js';
import { delivered, ended, retried, TestLedger } from '../support/ledger.js';
import { newDelivery } from '../support/new-delivery.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);
const hourMs = 3_600_000;

describe.each(stacks)('handing out on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;
  /** The same ledger in a second process, where there can be one. */
  let other: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
    other = test.postgres.isEmbedded ? test : await TestLedger.open(prepared.settings);
  });
  // No delivery of another test is due, in the queue or in hand.
  beforeEach(() => test.clear());
  afterAll(async () => {
    if (other !== test) await other.close();
    await test.close();
    await prepared.release();
  });

  const accept = async (): Promise<Delivery> => (await test.accept())[0]!;
  const waiting = (count = 1, body?: string) => test.accept(count, { state: 'waiting', delayMs: -1 }, body);
  const releaseOne = async ({ subscriptionId }: Delivery): Promise<Delivery[]> =>
    (await release(test.postgres, [{ subscriptionId, window: 1, limit: 1 }], null)).deliveries;
  const keysOf = (deliveries: Delivery[]) =>
    deliveries.map((key) => `${key.notificationId}/${key.subscriptionId}`).toSorted();
  const statesOf = (deliveries: Delivery[]) => Promise.all(deliveries.map((each) => test.state(each)));

  describe('a due delivery', () => {
    it('comes once, under a new generation, with its text and what the worker must know', async () => {
      const [delivery] = await waiting(1, '{"π":"€"}');
      const handedOut = await handOutDue(test.postgres, 10, 'a process');
      expect(handedOut).toMatchObject({ catalogueVersion: await test.catalogueVersion() });
      expect(handedOut.deliveries).toEqual([{ ...delivery, generation: 2, body: Buffer.from('{"π":"€"}') }]);
      const row = await test.row(delivery!);
      expect(row).toMatchObject({ state: 'queued', generation: 2, process: 'a process' });
      expect(row!.due_in_ms).toBeNull(); // a lease begins when a worker has it in hand
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toEqual([]);
    });

    it('does not come before its time', async () => {
      await test.accept(1, { state: 'waiting', delayMs: hourMs });
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toEqual([]);
    });

    it('comes in the order in which it was due, no more than asked for', async () => {
      const [late, early, middle] = [await waiting(), await waiting(), await waiting()].map(([each]) => each!);
      await test.age([early!], 3000);
      await test.age([middle!], 2000);
      const order: string[] = [];
      for (let times = 0; times < 3; times++) {
        order.push(...(await handOutDue(test.postgres, 1, null)).deliveries.map((each) => each.notificationId));
      }
      expect(order).toEqual([early, middle, late].map((each) => each!.notificationId));
    });

    it('comes without its text when that is too long to travel, counted in bytes', async () => {
      const just = '€'.repeat(Math.floor(longestInlineBody / 3));
      const [short, long] = [await waiting(1, just), await waiting(1, `${just}€`)].map(([each]) => each!);
      const found = new Map(
        (await handOutDue(test.postgres, 10, null)).deliveries.map(({ notificationId, body }) => [
          notificationId,
          body,
        ]),
      );
      expect(found.get(short!.notificationId)).toEqual(Buffer.from(just));
      expect(found.get(long!.notificationId)).toBeNull();
      const ids = [short!.notificationId, long!.notificationId, uuidv7()];
      expect(await readBodies(test.postgres, ids)).toEqual(
        new Map([
          [ids[0], Buffer.from(just)],
          [ids[1], Buffer.from(`${just}€`)],
        ]),
      );
    });

    it('is told apart: first attempts, and what failed or was released before', async () => {
      const [fresh, failed, held] = [await waiting(), [await accept()], [await accept()]].map(([each]) => each!);
      await test.settlements.settle(retried(failed!, 0));
      await test.holds.hold(held!, 'endpoint-busy');
      await putBack(test.postgres, await releaseOne(held!), 0);
      await test.age([failed!, held!], 1000);
      const lanes = new Map(
        (await handOutDue(test.postgres, 10, null)).deliveries.map((each) => [each.notificationId, laneOf(each)]),
      );
      expect([fresh, failed, held].map((each) => lanes.get(each!.notificationId))).toEqual(['due', 'slow', 'slow']);
    });

    it('does not count as released because an operator retries what was held, or released before', async () => {
      const [held, released] = [await accept(), await accept()];
      for (const each of [held, released]) await test.holds.hold(each, 'rate');
      await putBack(test.postgres, await releaseOne(released), hourMs);
      for (const each of [held, released]) expect(await retryNow(test.postgres, each)).toBe('retried');
      const { deliveries } = await handOutDue(test.postgres, 10, null);
      expect(deliveries.map(({ isReleased }) => isReleased)).toEqual([false, false]);
    });

    it('comes also when it is no longer worth sending, and says so', async () => {
      const [old] = await waiting();
      await test.sql(`UPDATE delivery SET expires_at = now() - interval '1 s' WHERE notification_id = $1`, [
        old!.notificationId,
      ]);
      const { deliveries } = await handOutDue(test.postgres, 10, null);
      expect(deliveries[0]!.expiresAt).toBeLessThan(Date.now());
    });

    it('never goes to two callers that ask at the same time', async () => {
      const due = await waiting(500);
      const batches = await Promise.all(
        Array.from({ length: 12 }, (_, nr) => handOutDue((nr % 2 === 0 ? test : other).postgres, 60, null)),
      );
      const first = batches.flatMap(({ deliveries }) => deliveries);
      expect(new Set(keysOf(first)).size).toBe(first.length);
      const rest = (await handOutDue(test.postgres, 1000, null)).deliveries;
      expect(keysOf([...first, ...rest])).toEqual(keysOf(due));
    });

    it('does not wait for a row that another process is changing', async () => {
      const [locked, free] = [await waiting(), await waiting()].map(([each]) => each!);
      // Embedded there is one connection, so no other process can.
      if (test.postgres.isEmbedded) await cancel(test.postgres, locked!);
      const found = await (test.postgres.isEmbedded
        ? handOutDue(test.postgres, 10, null)
        : other.postgres.dataSource.transaction(async (manager) => {
            await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [locked!.notificationId]);
            return handOutDue(test.postgres, 10, null);
          }));
      expect(found.deliveries.map((each) => each.notificationId)).toEqual([free!.notificationId]);
    });
  });

  it('knows which of many are still to be sent', async () => {
    const [queued, done, cancelled, waitsAgain, handedOutAgain] = await test.accept(5);
    await test.settlements.settle(delivered(done!));
    await cancel(test.postgres, cancelled!);
    await test.settlements.settle(retried(waitsAgain!, hourMs));
    await putBack(test.postgres, [handedOutAgain!], -1);
    const [again] = (await handOutDue(test.postgres, 10, null)).deliveries;
    const unknown = { ...queued!, subscriptionId: randomUUID() };
    const all = [queued!, done!, cancelled!, waitsAgain!, handedOutAgain!, again!, unknown];
    expect((await stillQueued(test.postgres, all)).deliveries).toEqual([queued, again]);
    expect((await stillQueued(test.postgres, [])).deliveries).toEqual([]);
  });

  it('puts back more deliveries than one statement takes', async () => {
    const refused = await test.accept(2, { state: 'queued', process: 'a process' });
    const others = Array.from({ length: 5000 }, () => newDelivery({ subscriptionId: randomUUID() }));
    await putBack(test.postgres, [refused[0]!, ...others, refused[1]!], 1000);
    for (const each of refused) expect(await test.row(each)).toMatchObject({ state: 'waiting', process: null });
  });

  it('puts back the deliveries that the queue refused, and only those', async () => {
    const [refused, done, handedOutAgain] = await test.accept(3, { state: 'queued', process: 'a process' });
    await test.settlements.settle(delivered(done!));
    await putBack(test.postgres, [handedOutAgain!], -1);
    await handOutDue(test.postgres, 10, null);
    await putBack(test.postgres, [refused!, done!, handedOutAgain!], 1000);
    expect(await test.row(refused!)).toMatchObject({
      state: 'waiting',
      generation: 1,
      process: null,
      attempts: 0,
      failures: 0,
    });
    expect((await test.row(refused!))!.due_in_ms).toBeLessThanOrEqual(1000);
    expect(await statesOf([done!, handedOutAgain!])).toEqual(['delivered', 'queued']);
  });

  describe('a delivery that a process has in hand', () => {
    it('has a lease, and the queue may forget it', async () => {
      const delivery = await accept();
      await test.keepInHand([delivery], 'a process');
      const row = await test.row(delivery);
      expect(row).toMatchObject({ state: 'queued', generation: 1, process: 'a process' });
      expect(row!.due_in_ms).toBeGreaterThan(test.config.settings.DELIVERY_LEASE_MS - 60_000);
      expect(row!.due_in_ms).toBeLessThanOrEqual(test.config.settings.DELIVERY_LEASE_MS);
      expect((await stillQueued(test.postgres, [delivery])).deliveries).toEqual([delivery]);
    });

    it('stays there when another process takes the message of it, which was not acknowledged', async () => {
      const delivery = await accept();
      await test.keepInHand([delivery], 'the first');
      await test.age([delivery], 60_000);
      await test.keepInHand([delivery], 'the second');
      const row = await test.row(delivery);
      expect(row).toMatchObject({ process: 'the first' });
      expect(row!.due_in_ms).toBeLessThanOrEqual(test.config.settings.DELIVERY_LEASE_MS - 60_000);
    });

    it.each([
      ['the sender', 'the sender'],
      ['that is not known', null],
    ])('is left to its holder, %s, and looked at again soon', async (_, holder) => {
      const [inHand, inQueue] = await test.accept(2);
      await test.keepInHand([inHand!], 'the sender');
      for (const each of [inHand!, inQueue!]) {
        await test.inHandOf('another').leaveToHolder(each, holder, 16_000);
        const row = await test.row(each);
        expect(row).toMatchObject({ state: 'queued', process: holder });
        expect(row!.due_in_ms).toBeLessThanOrEqual(16_000);
      }
    });

    describe.each([
      ['the sender', 'the sender'],
      ['which is not known', null],
      ['the very one that left it', 'another'],
    ])('and was left to its holder, %s,', (_, holder) => {
      it.each(['before', 'after'])('has no longer lease where its chunk is kept just %s that', async (order) => {
        const delivery = await accept();
        const another = test.inHandOf('another');
        const steps = [() => another.leaveToHolder(delivery, holder, 16_000), () => another.keep([delivery])];
        for (const step of order === 'before' ? steps.toReversed() : steps) await step();
        const row = await test.row(delivery);
        expect(row).toMatchObject({ state: 'queued', process: holder === 'another' ? null : holder });
        expect(row!.due_in_ms).toBeLessThanOrEqual(16_000);
        await test.age([delivery], 16_000);
        expect(await freeAfterLease(test.postgres, 0, 100)).toBe(1);
      });
    });

    it('is due at once when the process to which it was left has died', async () => {
      const [another, holder] = [await test.startProcess(), await test.startProcess()];
      const delivery = await accept();
      await test.inHandOf(another.id).leaveToHolder(delivery, holder.id, 16_000);
      await another.witness();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(0);
      await holder.die();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(1);
      expect(await test.row(delivery)).toMatchObject({ state: 'waiting', process: null });
    });

    it('is not given to a process under an older generation', async () => {
      const { id } = await test.startProcess();
      const delivery = await accept();
      await test.keepInHand([{ ...delivery, generation: 0 }], id);
      expect(await test.row(delivery)).toMatchObject({ process: null });
    });

    it('is due at once when the process has died, and untouched while it lives', async () => {
      const [living, dead] = [await test.startProcess(), await test.startProcess()];
      const [kept, freed, withBroker, finished] = await test.accept(4);
      await test.keepInHand([kept!], living.id);
      await test.keepInHand([freed!, finished!], dead.id);
      await test.settlements.settle(delivered(finished!));
      await living.witness();
      await dead.die();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(1);
      expect(await statesOf([kept!, freed!, withBroker!, finished!])).toEqual([
        'queued',
        'waiting',
        'queued',
        'delivered',
      ]);
      expect(await test.row(freed!)).toMatchObject({ process: null, generation: 1 });
      expect((await test.row(freed!))!.due_in_ms).toBeLessThanOrEqual(0);
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ generation: 2 }]);
    });

    it('stays with a process that seems dead while nobody has been alive for long: Postgres was out of reach', async () => {
      await test.sql('DELETE FROM process');
      const process = await test.startProcess();
      const delivery = await accept();
      await test.keepInHand([delivery], process.id);
      await process.die();
      const fresh = await test.startProcess();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(0);
      await fresh.witness();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(1);
    });

    it('is due at once when the process says that it ends, as is what that process had as its queue', async () => {
      await test.heartbeat.onApplicationBootstrap();
      const [inHand] = await test.accept(1);
      const [queued] = await test.accept(1, { state: 'queued', process: test.heartbeat.processId });
      await test.keepInHand([inHand!], test.heartbeat.processId);
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(0);
      await test.heartbeat.stop();
      expect(await freeOfDeadProcesses(test.postgres, 100)).toBe(2);
      expect(await statesOf([inHand!, queued!])).toEqual(['waiting', 'waiting']);
    });

    it('keeps the row of its dead process until it is freed', async () => {
      const process = await test.startProcess();
      const isKnown = async () => (await test.sql('SELECT FROM process WHERE id = $1', [process.id])).length === 1;
      const delivery = await accept();
      await test.keepInHand([delivery], process.id);
      await process.witness();
      await test.sql(
        `UPDATE process SET expires_at = now() - interval '1 hour', steady_since = now() - interval '2 hours' WHERE id = $1`,
        [process.id],
      );
      await test.heartbeat.sweep();
      expect(await isKnown()).toBe(true);
      await freeOfDeadProcesses(test.postgres, 100);
      await test.heartbeat.sweep();
      expect(await isKnown()).toBe(false);
    });

    it('is due at once when its lease has ended, although the process lives', async () => {
      const { id } = await test.startProcess();
      const [late, inTime, inQueue] = await test.accept(3);
      await test.keepInHand([late!, inTime!], id);
      await test.age([late!, inQueue!], hourMs);
      expect(await freeAfterLease(test.postgres, 0, 100)).toBe(1);
      expect(await statesOf([late!, inTime!, inQueue!])).toEqual(['waiting', 'queued', 'queued']);
      expect(await test.row(late!)).toMatchObject({ process: null, generation: 1 });
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ generation: 2 }]);
    });
  });

  describe('a delivery that was handed to the queue', () => {
    it('is due at once when the queue lost it: all before a given time, but none that a process has in hand', async () => {
      const [lost, inHand, done] = await test.accept(3);
      const { id } = await test.startProcess();
      await test.keepInHand([inHand!], id);
      await test.settlements.settle(delivered(done!));
      await test.age([lost!, inHand!, done!], 10_000);
      const since = await accept();
      expect(await freeQueuedBefore(test.postgres, 0, Date.now() - 5000, 100)).toBe(1);
      expect(await statesOf([lost!, inHand!, done!, since])).toEqual(['waiting', 'queued', 'delivered', 'queued']);
      expect((await test.row(lost!))!.due_in_ms).toBeLessThanOrEqual(0);
    });

    it('is freed in batches, the oldest first, each delivery for one of several that ask', async () => {
      const deliveries = await test.accept(200);
      await test.age(deliveries, hourMs);
      await test.age(deliveries.slice(0, 50), hourMs);
      expect(await freeQueuedBefore(test.postgres, 0, Date.now(), 50)).toBe(50);
      expect(new Set(await statesOf(deliveries.slice(0, 50)))).toEqual(new Set(['waiting']));
      const counts = await Promise.all(
        [0, 1, 2, 3].map((nr) => freeQueuedBefore((nr % 2 === 0 ? test : other).postgres, 0, Date.now(), 100)),
      );
      const total = counts.reduce((sum, count) => sum + count, 0);
      expect(total + (await freeQueuedBefore(test.postgres, 0, Date.now(), 1000))).toBe(150);
    });

    it('is noticed when it was handed out longer ago than that, and is not done', async () => {
      const [queued, inHand, done] = await test.accept(3);
      expect(await anyQueuedFor(test.postgres, 0, 60_000)).toBe(false);
      await test.keepInHand([inHand!], 'a process');
      await test.settlements.settle(delivered(done!));
      await test.age([inHand!, done!], hourMs);
      expect(await anyQueuedFor(test.postgres, 0, 60_000)).toBe(false);
      await test.age([queued!], hourMs);
      expect(await anyQueuedFor(test.postgres, 0, 60_000)).toBe(true);
    });
  });

  describe('an operator', () => {
    it('has a waiting delivery sent now, in the same series', async () => {
      const delivery = await accept();
      await test.settlements.settle(retried(delivery, hourMs));
      expect(await retryNow(test.postgres, delivery)).toBe('retried');
      expect(await test.row(delivery)).toMatchObject({
        state: 'waiting',
        generation: 2,
        failures: 1,
        replays: 0,
        attempts: 1,
      });
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ generation: 3, failures: 1 }]);
    });

    it.each(['failed', 'expired', 'cancelled'] as const)(
      'has a delivery that ended as %s sent again, in a new series',
      async (state) => {
        const delivery = await accept();
        await test.settlements.settle(ended(delivery, state));
        expect(await retryNow(test.postgres, delivery)).toBe('retried');
        const row = await test.row(delivery);
        expect(row).toMatchObject({ state: 'waiting', failures: 0, replays: 1, has_ended: false });
        expect((await handOutDue(test.postgres, 10, null)).deliveries).toMatchObject([{ failures: 0, replays: 1 }]);
      },
    );

    it('changes no delivery by a retry that has arrived, is on its way, or does not exist', async () => {
      const [done, queued] = await test.accept(2);
      await test.settlements.settle(delivered(done!));
      expect(await retryNow(test.postgres, done!)).toBe('delivered');
      expect(await retryNow(test.postgres, queued!)).toBe('retried');
      expect(await test.row(queued!)).toMatchObject({ state: 'queued', generation: 1 });
      expect(await retryNow(test.postgres, { ...done!, subscriptionId: randomUUID() })).toBe('not-found');
    });

    it('cancels a delivery that has not ended, once', async () => {
      const [queued, waits, done] = await test.accept(3);
      await test.settlements.settle(retried(waits!, hourMs));
      await test.settlements.settle(delivered(done!));
      expect(await cancel(test.postgres, queued!)).toBe('cancelled');
      expect(await cancel(test.postgres, waits!)).toBe('cancelled');
      expect(await cancel(test.postgres, waits!)).toBe('ended');
      expect(await cancel(test.postgres, done!)).toBe('ended');
      expect(await cancel(test.postgres, { ...done!, notificationId: uuidv7() })).toBe('not-found');
      expect(await test.row(queued!)).toMatchObject({
        state: 'cancelled',
        generation: 2,
        has_ended: true,
        due_in_ms: null,
      });
      expect((await stillQueued(test.postgres, [queued!])).deliveries).toEqual([]);
    });
  });
});
