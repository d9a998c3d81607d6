import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Releaser } from '../../src/dispatching/releaser.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { Clock } from '../../src/infra/clock.js';
import type { HandedOut } from '../../src/ledger/delivery.js';
import { claimLooks, endLooks, lookNow, type Look } from '../../src/ledger/held-subscriptions.js';
import { bringLooksForward } from '../../src/ledger/planned-looks.js';
import type { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Chunk } from '../../src/queue/chunk.js';
import type { DeliveryQueue, Lane } from '../../src/queue/delivery-queue.js';
import { Enqueuer } from '../../src/queue/enqueuer.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { delivered, newNotification } from '../support/ledger.js';
import { plainCipher } from '../support/secrets.js';
import { openVirtualLedger, type VirtualLedger } from '../support/virtual-ledger.js';
import { insertSubscription } from '../support/insert-subscription.js';

const running = new AbortController().signal;
/** Between two rounds of a dispatcher. */
const betweenRoundsMs = 100;
/** For the statement that releases some: time that a rate must not lose. */
const releasingMs = 40;
/** Results are written together with those that come within this time. */
const lingerMs = 25;

describe('the rate of a subscription, with two dispatchers at one ledger', () => {
  let ledger: VirtualLedger;
  let released: HandedOut[];
  let releasers: Releaser[];
  let catalogues: Catalogue[];
  /** While the next statement releases some. */
  let meanwhile: (() => Promise<unknown>) | undefined;

  /** With services of its own, as in a process of its own. */
  async function newReleaser(): Promise<Releaser> {
    const { test, time } = ledger;
    const { postgres, events, config } = test;
    const catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, plainCipher);
    const openEndpoints = new OpenEndpoints(postgres, events);
    const ledgerClock = { now: () => time.now() } as LedgerClock;
    const queue = {
      accepts: () => true,
      process: null,
      onCreated: () => {},
      publish: (_lane: Lane, chunk: Chunk) => {
        released.push(...chunk.deliveries);
        return Promise.resolve('confirmed');
      },
    } as unknown as DeliveryQueue;
    const enqueuer = new Enqueuer(queue, postgres, {} as Heartbeat, ledgerClock);
    const clock: Clock = { now: () => time.now(), pause: () => Promise.resolve() };
    catalogues.push(catalogue);
    await catalogue.refresh();
    return new Releaser(postgres, enqueuer, directory, openEndpoints, ledgerClock, catalogue, clock, config);
  }

  beforeAll(async () => {
    ledger = await openVirtualLedger();
    const query = ledger.test.postgres.query.bind(ledger.test.postgres);
    vi.spyOn(ledger.test.postgres, 'query').mockImplementation(async (statement, values) => {
      if (statement.name === 'release') {
        const first = meanwhile;
        meanwhile = undefined;
        await first?.();
        await ledger.time.pass(releasingMs);
      }
      return query(statement, values);
    });
  });
  beforeEach(async () => {
    await ledger.test.clear();
    [released, catalogues, meanwhile] = [[], [], undefined];
    releasers = [await newReleaser(), await newReleaser()];
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    await ledger.close();
  });

  async function newSubscription(ratePerSecond: number): Promise<string> {
    const id = await insertSubscription((...asked) => ledger.test.sql(...asked), { rate_per_second: ratePerSecond });
    for (const catalogue of catalogues) await catalogue.refresh();
    return id;
  }

  async function hold(subscription: string, count: number): Promise<void> {
    const now = await ledger.test.now();
    const held = Array.from({ length: count }, (_, nr) => ({
      ...newNotification(0, '{}', uuidv7({ msecs: now + nr })),
      subscriptionIds: [subscription],
      heldFor: new Map([[subscription, 'rate' as const]]),
    }));
    await ledger.test.acceptAll(held);
  }

  /** As of a change of its settings. */
  const makeLookDue = (subscription: string) =>
    ledger.test.postgres.dataSource.transaction((manager) => lookNow(manager, [subscription]));

  async function goOn(forMs: number): Promise<void> {
    const untilMs = ledger.time.now() + forMs;
    while (ledger.time.now() < untilMs) {
      await ledger.time.pass(betweenRoundsMs - lingerMs);
      const before = released.length;
      await Promise.all(releasers.map((each) => each.releaseHeld(running)));
      await settleAll(before);
    }
  }

  async function settleAll(settled: number): Promise<void> {
    const settling = released.slice(settled).map((each) => ledger.test.settlements.settle(delivered(each)));
    await ledger.time.pass(lingerMs);
    await Promise.all(settling);
  }

  it.each([
    [2, 30],
    [20, 10],
    [150, 6],
  ])(
    'of %s a second is kept to within a tenth over %s seconds, and no delivery is released twice',
    async (rate, seconds) => {
      const subscription = await newSubscription(rate);
      await hold(subscription, rate * seconds * 2);
      await ledger.test.sql('UPDATE held_subscription SET look_at = now(), credited_at = now(), rate_credit = 0');
      const beganAt = ledger.time.now();
      await goOn(seconds * 1000);
      const expected = (rate * (ledger.time.now() - beganAt)) / 1000;
      expect(released.length).toBeGreaterThan(expected * 0.9);
      expect(released.length).toBeLessThan(expected * 1.1);
      expect(new Set(released.map(({ notificationId }) => notificationId)).size).toBe(released.length);
    },
  );

  it.each([5, 20])('of %s a second is kept from the first look after a quiet time, but for one call', async (rate) => {
    const subscription = await newSubscription(rate);
    await hold(subscription, 1);
    await goOn(5000);
    expect(released.splice(0)).toHaveLength(1);
    const [row] = await ledger.test.sql<{ credited_at: Date }>('SELECT credited_at FROM held_subscription');
    await hold(subscription, rate * 4);
    const seconds = () => (ledger.time.now() - row!.credited_at.getTime()) / 1000;
    while (seconds() < 2) {
      await goOn(1); // one round
      expect(released.length).toBeLessThanOrEqual(1 + rate * seconds());
    }
    expect(released.length).toBeGreaterThan(rate * 1.5);
  });

  it.each([5, 100])('of %s a second is kept where looks are made due while they are under way', async (rate) => {
    const seconds = 5;
    const subscription = await newSubscription(rate);
    await hold(subscription, rate * seconds * 3);
    await ledger.test.sql('UPDATE held_subscription SET look_at = now(), credited_at = now(), rate_credit = 0');
    const other = await newReleaser();
    const beganAt = ledger.time.now();
    const allowed = () => (rate * (ledger.time.now() - beganAt)) / 1000;
    while (ledger.time.now() < beganAt + seconds * 1000) {
      meanwhile = async () => {
        await makeLookDue(subscription);
        await other.releaseHeld(running);
      };
      await goOn(1); // one round
      // For a moment two looks may both spend what one had, at most half a second's.
      expect(released.length).toBeLessThanOrEqual(1 + allowed() + rate / 2);
    }
    expect(released.length).toBeGreaterThan(allowed() * 0.6); // its window has yet to grow
    expect(released.length).toBeLessThan(allowed() * 1.1 + 1);
    expect(new Set(released.map(({ notificationId }) => notificationId)).size).toBe(released.length);
  });

  describe('of 100 a second, where a look is made due while one is under way', () => {
    let subscription: string;
    const claimOne = async () => (await claimLooks(ledger.test.postgres, 1))[0];
    const creditOf = (look: Look) => look.rateCredit + 100 * look.secondsSinceCredit;
    /** It releases so many. */
    const end = (look: Look, count: number) =>
      endLooks(ledger.test.postgres, [
        { ...look, released: count, rateCredit: creditOf(look) - count, nextLookInMs: 250 },
      ]);

    beforeEach(async () => {
      subscription = await newSubscription(100);
      await hold(subscription, 1);
      await ledger.test.sql('UPDATE held_subscription SET look_at = now(), credited_at = now(), rate_credit = 0');
      await ledger.time.pass(300);
    });

    it.each(['first', 'second'])('no call is given twice in all, where the %s ends first', async (firstToEnd) => {
      const first = (await claimOne())!;
      await ledger.time.pass(10);
      await makeLookDue(subscription);
      const second = (await claimOne())!;
      expect([creditOf(first), creditOf(second)].map(Math.round)).toEqual([30, 31]);
      const ends = [() => end(first, 25), () => end(second, 26)];
      for (const endOne of firstToEnd === 'first' ? ends : ends.toReversed()) {
        expect(await claimOne()).toBeUndefined(); // neither makes a third one due
        await endOne();
        await ledger.time.pass(10);
      }
      await ledger.time.pass(500);
      const next = (await claimOne())!;
      expect(Math.round(creditOf(next))).toBe(30 + 1 + 2 + 50 - 25 - 26);
    });

    it('that one is made when it is due, and the credit is as old as it is', async () => {
      const first = (await claimOne())!;
      await bringLooksForward(ledger.test.postgres, [{ subscriptionId: subscription, nextLookInMs: 1000 }]);
      await ledger.time.pass(40);
      await end(first, 30);
      await ledger.time.pass(500);
      expect(await claimOne()).toBeUndefined();
      await ledger.time.pass(500);
      expect(Math.round(creditOf((await claimOne())!))).toBe(104);
    });
  });
});
