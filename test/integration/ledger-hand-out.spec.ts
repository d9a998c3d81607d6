import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { longestTravellingBody, type Delivery } from '../../src/ledger/delivery.js';
import { delivered, ended, retried, TestLedger } from '../support/ledger.js';
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
  // Nothing of another test is due, leased or owned.
  beforeEach(() => test.clear());
  afterAll(async () => {
    if (other !== test) await other.close();
    await test.close();
    await prepared.release();
  });

  const accept = async (): Promise<Delivery> => (await test.accept())[0]!;
  const waiting = (count = 1, body?: string) => test.accept(count, { state: 'waiting', delayMs: -1 }, body);
  const keysOf = (deliveries: Delivery[]) =>
    deliveries.map((key) => `${key.notificationId}/${key.subscriptionId}`).toSorted();
  const statesOf = (deliveries: Delivery[]) => Promise.all(deliveries.map((each) => test.state(each)));

  describe('what is due', () => {
    it('comes once, under a new generation and a lease, with its text and what the worker must know', async () => {
      const [delivery] = await waiting(1, '{"π":"€"}');
      const claimed = await test.leases.claimDue(10, 'a process');
      expect(claimed).toMatchObject({ catalogueVersion: await test.catalogueVersion() });
      expect(claimed.deliveries).toEqual([{ ...delivery, generation: 2, isSlow: false, body: '{"π":"€"}' }]);
      const row = await test.row(delivery!);
      expect(row).toMatchObject({ state: 'queued', generation: 2, owner: 'a process' });
      expect(row!.due_in_ms).toBeGreaterThan(test.config.settings.DELIVERY_LEASE_MS - 10_000);
      expect((await test.leases.claimDue(10, null)).deliveries).toEqual([]);
    });

    it('does not come before its time', async () => {
      await test.accept(1, { state: 'waiting', delayMs: hourMs });
      expect((await test.leases.claimDue(10, null)).deliveries).toEqual([]);
    });

    it('comes in the order in which it was due, no more than asked for', async () => {
      const [late, early, middle] = [await waiting(), await waiting(), await waiting()].map(([each]) => each!);
      await test.age([early!], 3000);
      await test.age([middle!], 2000);
      const order: string[] = [];
      for (let times = 0; times < 3; times++) {
        order.push(...(await test.leases.claimDue(1, null)).deliveries.map((each) => each.notificationId));
      }
      expect(order).toEqual([early, middle, late].map((each) => each!.notificationId));
    });

    it('comes without its text when that is too long to travel, counted in bytes', async () => {
      const just = '€'.repeat(Math.floor(longestTravellingBody / 3));
      const [short, long] = [await waiting(1, just), await waiting(1, `${just}€`)].map(([each]) => each!);
      const found = new Map(
        (await test.leases.claimDue(10, null)).deliveries.map(({ notificationId, body }) => [notificationId, body]),
      );
      expect(found.get(short!.notificationId)).toBe(just);
      expect(found.get(long!.notificationId)).toBeNull();
      const ids = [short!.notificationId, long!.notificationId, uuidv7()];
      expect(await test.ledger.bodies(ids)).toEqual(
        new Map([
          [ids[0], just],
          [ids[1], `${just}€`],
        ]),
      );
    });

    it('is told apart: first attempts, and what failed or found no room before', async () => {
      const [fresh, failed, held] = [await waiting(), [await accept()], [await accept()]].map(([each]) => each!);
      await test.ledger.settle(retried(failed!, 0));
      await test.ledger.settle({ ...held!, state: 'held', delayMs: 0, attempt: null });
      await test.age([failed!, held!], 1000);
      const slow = new Map(
        (await test.leases.claimDue(10, null)).deliveries.map((each) => [each.notificationId, each.isSlow]),
      );
      expect([fresh, failed, held].map((each) => slow.get(each!.notificationId))).toEqual([false, true, true]);
    });

    it('comes also when it is no longer worth sending, and says so', async () => {
      const [old] = await waiting();
      await test.sql(`UPDATE delivery SET expires_at = now() - interval '1 s' WHERE notification_id = $1`, [
        old!.notificationId,
      ]);
      const { deliveries } = await test.leases.claimDue(10, null);
      expect(deliveries[0]!.expiresAt).toBeLessThan(Date.now());
    });

    it('never goes to two who ask at the same time', async () => {
      const due = await waiting(500);
      const claims = await Promise.all(
        Array.from({ length: 12 }, (_, nr) => (nr % 2 === 0 ? test : other).leases.claimDue(60, null)),
      );
      const first = claims.flatMap(({ deliveries }) => deliveries);
      expect(new Set(keysOf(first)).size).toBe(first.length);
      const rest = (await test.leases.claimDue(1000, null)).deliveries;
      expect(keysOf([...first, ...rest])).toEqual(keysOf(due));
    });

    it('is not held up by a row that somebody else is changing', async () => {
      const [locked, free] = [await waiting(), await waiting()].map(([each]) => each!);
      // Embedded there is one connection, so nobody else can.
      if (test.postgres.isEmbedded) await test.ledger.cancel(locked!);
      const found = await (test.postgres.isEmbedded
        ? test.leases.claimDue(10, null)
        : other.postgres.dataSource.transaction(async (manager) => {
            await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [locked!.notificationId]);
            return test.leases.claimDue(10, null);
          }));
      expect(found.deliveries.map((each) => each.notificationId)).toEqual([free!.notificationId]);
    });
  });

  it('knows which of many are still to be sent', async () => {
    const [queued, done, cancelled, waitsAgain, claimedAgain] = await test.accept(5);
    await test.ledger.settle(delivered(done!));
    await test.ledger.cancel(cancelled!);
    await test.ledger.settle(retried(waitsAgain!, hourMs));
    await test.leases.putBack([claimedAgain!], -1);
    const [again] = (await test.leases.claimDue(10, null)).deliveries;
    const unknown = { ...queued!, subscriptionId: randomUUID() };
    const all = [queued!, done!, cancelled!, waitsAgain!, claimedAgain!, again!, unknown];
    expect(await test.leases.stillQueued(all)).toEqual([queued, again]);
    expect(await test.leases.stillQueued([])).toEqual([]);
  });

  it('puts back what the queue refused, and only that', async () => {
    const [refused, done, claimedAgain] = await test.accept(3, { state: 'queued', owner: 'a process' });
    await test.ledger.settle(delivered(done!));
    await test.leases.putBack([claimedAgain!], -1);
    await test.leases.claimDue(10, null);
    await test.leases.putBack([refused!, done!, claimedAgain!], 1000);
    expect(await test.row(refused!)).toMatchObject({
      state: 'waiting',
      generation: 1,
      owner: null,
      attempts: 0,
      failures: 0,
    });
    expect((await test.row(refused!))!.due_in_ms).toBeLessThanOrEqual(1000);
    expect(await statesOf([done!, claimedAgain!])).toEqual(['delivered', 'queued']);
  });

  it('shortens a lease, never lengthens it, and only that of the same generation', async () => {
    const [delivery, other] = await test.accept(2);
    await test.leases.shortenLease([delivery!, { ...other!, generation: 7 }], 5000);
    await test.leases.shortenLease([delivery!], hourMs);
    expect((await test.row(delivery!))!.due_in_ms).toBeLessThanOrEqual(5000);
    expect((await test.row(other!))!.due_in_ms).toBeGreaterThan(100_000);
    expect(await test.state(delivery!)).toBe('queued');
  });

  it('frees what it was given for so short a time although others still stand in line', async () => {
    const [delivery] = await test.accept();
    await test.leases.shortenLease([delivery!], 0);
    expect(await test.leases.endLeases(0, 10)).toEqual({ ended: 1, lost: 1 });
    expect(await test.row(delivery!)).toMatchObject({ state: 'waiting', owner: null });
  });

  describe('what a process has in hand', () => {
    it('is due at once when the process has ended, and untouched while it lives', async () => {
      const [living, dead] = [await test.startProcess(), await test.startProcess()];
      const [kept, freed, withBroker, finished] = await test.accept(4);
      await test.leases.own([kept!], living.id);
      await test.leases.own([freed!, finished!], dead.id);
      await test.ledger.settle(delivered(finished!));
      await dead.end();
      await test.leases.freeOrphaned();
      expect(await statesOf([kept!, freed!, withBroker!, finished!])).toEqual([
        'queued',
        'waiting',
        'queued',
        'delivered',
      ]);
      expect(await test.row(freed!)).toMatchObject({ owner: null, generation: 1 });
      expect((await test.row(freed!))!.due_in_ms).toBeLessThanOrEqual(0);
      expect((await test.leases.claimDue(10, null)).deliveries).toMatchObject([{ generation: 2 }]);
    });

    it('is not taken into hand under an older generation', async () => {
      const { id } = await test.startProcess();
      const delivery = await accept();
      await test.leases.own([{ ...delivery, generation: 0 }], id);
      expect(await test.row(delivery)).toMatchObject({ owner: null });
    });

    it('is free when the process was never heard of', async () => {
      const [delivery] = await test.accept(1, { state: 'queued', owner: randomUUID() });
      await test.leases.freeOrphaned();
      expect(await test.state(delivery!)).toBe('waiting');
    });
  });

  describe('a lease that ended', () => {
    it('is noticed', async () => {
      const delivery = await accept();
      expect(await test.leases.hasEndedLease()).toBe(false);
      await test.age([delivery], hourMs);
      expect(await test.leases.hasEndedLease()).toBe(true);
    });

    it('was lost when workers have taken later ones: due at once', async () => {
      const delivery = await accept();
      await test.age([delivery], hourMs);
      expect(await test.leases.endLeases(Date.now(), 10)).toEqual({ ended: 1, lost: 1 });
      expect(await test.row(delivery)).toMatchObject({ state: 'waiting', generation: 1 });
      expect(await test.leases.hasEndedLease()).toBe(false);
      expect((await test.leases.claimDue(10, null)).deliveries).toHaveLength(1);
    });

    it('still waits in line when workers are not that far: leased anew, not handed out twice', async () => {
      const delivery = await accept();
      await test.age([delivery], hourMs);
      expect(await test.leases.endLeases(Date.now() - 2 * hourMs, 10)).toEqual({ ended: 1, lost: 0 });
      const row = await test.row(delivery);
      expect(row).toMatchObject({ state: 'queued', generation: 1 });
      expect(row!.due_in_ms).toBeGreaterThan(100_000);
      expect((await test.leases.claimDue(10, null)).deliveries).toEqual([]);
      expect(await test.leases.stillQueued([delivery])).toEqual([delivery]);
    });

    it('was lost when a process had it in hand and not the queue', async () => {
      const { id } = await test.startProcess();
      const delivery = await accept();
      await test.leases.own([delivery], id);
      await test.age([delivery], hourMs);
      expect(await test.leases.endLeases(0, 10)).toEqual({ ended: 1, lost: 1 });
    });

    it('ends no more than asked for, and each for one of several who ask', async () => {
      const deliveries = await test.accept(200);
      await test.age(deliveries, hourMs);
      expect(await test.leases.endLeases(Date.now(), 50)).toEqual({ ended: 50, lost: 50 });
      const rounds = await Promise.all(
        [0, 1, 2, 3].map((nr) => (nr % 2 === 0 ? test : other).leases.endLeases(Date.now(), 100)),
      );
      const inAll = rounds.reduce((sum, { ended }) => sum + ended, 0);
      const rest = await test.leases.endLeases(Date.now(), 1000);
      expect(inAll + rest.ended).toBe(150);
    });
  });

  it('frees what a queue held that was made anew, and nothing queued since or held by a process', async () => {
    const [lost, inHand, done] = await test.accept(3);
    const { id } = await test.startProcess();
    await test.leases.own([inHand!], id);
    await test.ledger.settle(delivered(done!));
    await test.age([lost!, inHand!, done!], 10_000);
    const since = await accept();
    await test.leases.freeQueued(Date.now() - 5000);
    expect(await statesOf([lost!, inHand!, done!, since])).toEqual(['waiting', 'queued', 'delivered', 'queued']);
    expect((await test.row(lost!))!.due_in_ms).toBeLessThanOrEqual(0);
  });

  it('knows how far the workers are: the newest that any took, and the oldest that any still has in hand', async () => {
    expect(await test.leases.readProgress()).toEqual([]);
    await test.leases.recordProgress([
      { lane: 'due', newestTaken: 2000, oldestInHand: 1700 },
      { lane: 'slow', newestTaken: 1000, oldestInHand: null },
    ]);
    const ofAnother = (newest: number, oldest: number | null) =>
      test.sql(
        `INSERT INTO lane_progress VALUES ('due', 'another', to_timestamp(${newest / 1000}), to_timestamp(${oldest === null ? 'NULL' : oldest / 1000}), now())
         ON CONFLICT (lane, process) DO UPDATE SET newest_taken = EXCLUDED.newest_taken, oldest_in_hand = EXCLUDED.oldest_in_hand`,
      );
    await ofAnother(1900, 1500);
    expect(await test.leases.readProgress()).toEqual(
      expect.arrayContaining([
        { lane: 'due', newestTaken: 2000, oldestInHand: 1500 },
        { lane: 'slow', newestTaken: 1000, oldestInHand: null },
      ]),
    );
    await ofAnother(2500, null);
    expect(await test.leases.readProgress()).toEqual(
      expect.arrayContaining([{ lane: 'due', newestTaken: 2500, oldestInHand: 1700 }]),
    );
  });

  it('no longer counts what a worker had in hand when it has said nothing for longer than the broker takes', async () => {
    const report = (process: string, seconds: number) =>
      test.sql(`INSERT INTO lane_progress VALUES ('due', $1, now(), to_timestamp(1.5), now() - $2 * interval '1 s')`, [
        process,
        seconds,
      ]);
    await report('long gone', 21);
    expect(await test.leases.readProgress()).toEqual([]);
    await report('just gone', 15);
    expect(await test.leases.readProgress()).toMatchObject([{ lane: 'due', oldestInHand: 1500 }]);
    await test.leases.sweepProcesses();
    expect(await test.sql('SELECT process FROM lane_progress')).toEqual([{ process: 'just gone' }]);
  });

  it('knows when processes ended without a word, and forgets those long gone', async () => {
    await test.sql('DELETE FROM process');
    const endedAgo = async (seconds: number) => {
      const { id } = await test.startProcess();
      const text = `UPDATE process SET expires_at = now() - $2 * interval '1 s' WHERE id = $1 RETURNING expires_at`;
      await test.sql(text, [id, seconds]);
      const [row] = await test.sql<{ at: string }>(
        'SELECT (extract(epoch FROM expires_at) * 1000)::float8 AS at FROM process WHERE id = $1',
        [id],
      );
      return Number(row!.at);
    };
    await test.startProcess();
    expect(await test.leases.deathAfter(0)).toBeUndefined();
    const [longGone, first, second] = [await endedAgo(3601), await endedAgo(60), await endedAgo(2)];
    const deaths: number[] = [];
    for (let at: number | undefined = 0; (at = await test.leases.deathAfter(at));) deaths.push(at);
    expect(deaths).toEqual([longGone, first, second].map(Math.ceil));
    await test.leases.sweepProcesses();
    expect(await test.leases.deathAfter(0)).toBe(Math.ceil(first));
  });

  describe('an operator', () => {
    it('has what waits sent now, in the same series', async () => {
      const delivery = await accept();
      await test.ledger.settle(retried(delivery, hourMs));
      expect(await test.ledger.retryNow(delivery)).toBe('retried');
      expect(await test.row(delivery)).toMatchObject({
        state: 'waiting',
        generation: 2,
        failures: 1,
        replays: 0,
        attempts: 1,
      });
      expect((await test.leases.claimDue(10, null)).deliveries).toMatchObject([{ generation: 3, failures: 1 }]);
    });

    it.each(['failed', 'expired', 'cancelled'] as const)(
      'has what ended as %s sent again, in a new series',
      async (state) => {
        const delivery = await accept();
        await test.ledger.settle(ended(delivery, state));
        expect(await test.ledger.retryNow(delivery)).toBe('retried');
        const row = await test.row(delivery);
        expect(row).toMatchObject({ state: 'waiting', failures: 0, replays: 1, has_ended: false });
        expect((await test.leases.claimDue(10, null)).deliveries).toMatchObject([{ failures: 0, replays: 1 }]);
      },
    );

    it('does not have delivered sent again, nor hurried what is on its way, nor found what is not there', async () => {
      const [done, queued] = await test.accept(2);
      await test.ledger.settle(delivered(done!));
      expect(await test.ledger.retryNow(done!)).toBe('delivered');
      expect(await test.ledger.retryNow(queued!)).toBe('retried');
      expect(await test.row(queued!)).toMatchObject({ state: 'queued', generation: 1 });
      expect(await test.ledger.retryNow({ ...done!, subscriptionId: randomUUID() })).toBe('not-found');
    });

    it('cancels what has not ended, once', async () => {
      const [queued, waits, done] = await test.accept(3);
      await test.ledger.settle(retried(waits!, hourMs));
      await test.ledger.settle(delivered(done!));
      expect(await test.ledger.cancel(queued!)).toBe('cancelled');
      expect(await test.ledger.cancel(waits!)).toBe('cancelled');
      expect(await test.ledger.cancel(waits!)).toBe('ended');
      expect(await test.ledger.cancel(done!)).toBe('ended');
      expect(await test.ledger.cancel({ ...done!, notificationId: uuidv7() })).toBe('not-found');
      expect(await test.row(queued!)).toMatchObject({
        state: 'cancelled',
        generation: 2,
        has_ended: true,
        due_in_ms: null,
      });
      expect(await test.leases.stillQueued([queued!])).toEqual([]);
    });
  });

  it('cancels everything of a subscription that has not ended, in the transaction that removes it', async () => {
    const [mine, others] = [await test.accept(2), await accept()];
    const [subscriptionId] = [mine[0]!.subscriptionId];
    await test.postgres.dataSource.transaction((manager) =>
      test.ledger.cancelAllOfSubscription(manager, subscriptionId),
    );
    expect(await statesOf([mine[0]!, mine[1]!, others])).toEqual(['cancelled', 'queued', 'queued']);
    const undone = test.postgres.dataSource.transaction(async (manager) => {
      await test.ledger.cancelAllOfSubscription(manager, others.subscriptionId);
      throw new Error('and then it failed');
    });
    await expect(undone).rejects.toThrow('and then it failed');
    expect(await test.state(others)).toBe('queued');
  });
});
