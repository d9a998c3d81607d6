import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { HeldTooLongRule } from '../../src/dispatching/held-too-long.service.js';
import type { Releaser } from '../../src/dispatching/releaser.service.js';
import type { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { Delivery, HeldReason } from '../../src/ledger/delivery.js';
import { freeHeldExpired, freeHeldTooLong } from '../../src/ledger/free-held.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { claimLooks, forgetHeldSubscriptions, lookNow, readBacklogs } from '../../src/ledger/held-subscriptions.js';
import { closeEndpoints } from '../../src/ledger/open-endpoints.js';
import { passTurns } from '../../src/ledger/pass-turn.js';
import { readNotPaused } from '../../src/ledger/unsettled-held.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { longestParkedSeconds } from '../../src/retry-policy/retry-schedule.js';
import { delivered, ended, newNotification, toBroker, type TestLedger } from '../support/ledger.js';
import { embedded, real } from '../support/stacks.js';
import { HeldScene, origin, running, url } from '../support/held-scene.js';
import { eventually } from '../support/eventually.js';
import { newDelivery } from '../support/new-delivery.js';

Logger.overrideLogger(false);

const hourMs = 3_600_000;
const firstWindow = 16;

describe.each([embedded, real])('deliveries that are held, on the $name stack', (stack) => {
  const scene = new HeldScene(stack);
  const { enqueued, newReleaser, newSubscription, accept, lookIsDue, look, probeIsDue, settleAll } = scene;
  let test: TestLedger;
  let catalogue: Catalogue;
  let openEndpoints: OpenEndpoints;
  let releaser: Releaser;
  let heldTooLong: HeldTooLongRule;
  let subscription: string;

  beforeAll(async () => {
    ({ test, catalogue, openEndpoints, releaser, heldTooLong } = await scene.open());
  });
  beforeEach(async () => {
    subscription = await scene.clear();
  });
  afterEach(() => vi.restoreAllMocks());
  afterAll(() => scene.close());

  const states = async (deliveries: Delivery[]) => Promise.all(deliveries.map((each) => test.state(each)));
  const count = (list: (string | undefined)[], state: string) => list.filter((each) => each === state).length;
  const row = async (id = subscription) =>
    (
      await test.sql<{ release_window: number; is_backlog: boolean }>(
        'SELECT release_window, is_backlog FROM held_subscription WHERE subscription_id = $1',
        [id],
      )
    )[0];

  it('are looked at for no more subscriptions than asked, also by a plan that was made when there was one', async () => {
    const insert =
      'INSERT INTO held_subscription (subscription_id) SELECT gen_random_uuid() FROM generate_series(1, $1)';
    await test.sql(insert, [1]);
    await test.sql('VACUUM ANALYZE held_subscription');
    await test.sql(insert, [24]);
    expect(await claimLooks(test.postgres, 20)).toHaveLength(20);
  });

  it('stay in the ledger, all but those of one look, where the queue has no room for repeated ones', async () => {
    const many = [];
    for (let nr = 0; nr < 65; nr++) many.push(...(await accept(1, 'endpoint-busy', await newSubscription())));
    await lookIsDue();
    const full = new InProcessDeliveryQueue(test.heartbeat.processId, 100_000);
    await full.consume('fresh', 1, () => Promise.resolve());
    const published = vi.spyOn(full, 'publish').mockResolvedValue('refused');
    expect(await newReleaser(full).releaseHeld(running)).toBe(64);
    expect(published).toHaveBeenCalledTimes(1);
    const found = await states(many);
    expect([count(found, 'waiting'), count(found, 'held')]).toEqual([64, 1]);
  });

  it.each([
    ['accept-some-held', {}],
    ['accept-on-terms', { expiresAt: Date.now() + hourMs }],
  ])('are committed as held by %s, and the others of their notification are not', async (statement, terms) => {
    const names = vi.spyOn(test.postgres, 'query');
    const other = randomUUID();
    const item = { ...newNotification(0), subscriptionIds: [subscription, other], ...terms };
    const { decisions } = await test.acceptAll([{ ...item, heldFor: new Map([[subscription, 'endpoint-parked']]) }]);
    const accepting = names.mock.calls.map(([{ name }]) => name).filter((name) => name.startsWith('accept'));
    names.mockRestore();
    expect(accepting).toEqual([statement]);
    expect(decisions).toMatchObject([{ kind: 'accepted', handedTo: 'worker' }]);
    expect(
      await test.sql(
        'SELECT subscription_id, state, held_for, next_at, queued_at IS NULL AS out FROM delivery ORDER BY state',
      ),
    ).toEqual([
      { subscription_id: other, state: 'queued', held_for: null, next_at: null, out: false },
      { subscription_id: subscription, state: 'held', held_for: 'endpoint-parked', next_at: null, out: true },
    ]);
    expect(await row()).toEqual({ release_window: firstWindow, is_backlog: false });
    expect(await row(other)).toBeUndefined();
  });

  it('wait for their time first where they are scheduled, and are expired where they are too old', async () => {
    const heldFor = new Map<string, HeldReason>([[subscription, 'paused']]);
    const item = () => ({ ...newNotification(0), subscriptionIds: [subscription], heldFor });
    const [later, old] = [
      { ...item(), notBefore: Date.now() + hourMs },
      { ...item(), expiresAt: Date.now() - hourMs },
    ];
    await test.acceptAll([later, old]);
    const held = await test.sql('SELECT state, held_for FROM delivery ORDER BY state');
    expect(held).toEqual([
      { state: 'waiting', held_for: null },
      { state: 'expired', held_for: null },
    ]);
    expect(await row()).toBeUndefined();
  });

  it('are held by a worker only in the generation that it has', async () => {
    const [first, second] = await accept(2);
    await Promise.all([
      test.holds.hold(first!, 'endpoint-busy'),
      test.holds.hold({ ...second!, generation: 2 }, 'endpoint-busy'),
    ]);
    expect(await states([first!, second!])).toEqual(['held', 'queued']);
    expect(await row()).toEqual({ release_window: firstWindow, is_backlog: true });
    expect(await readBacklogs(test.postgres)).toEqual(new Set([subscription]));
  });

  it('are released oldest first, as many as the window has room for, which doubles while they are settled', async () => {
    const deliveries = await accept(100, 'endpoint-parked');
    expect(await look()).toBe(firstWindow);
    expect(enqueued.map(({ notificationId }) => notificationId).toSorted()).toEqual(
      deliveries.slice(0, firstWindow).map(({ notificationId }) => notificationId),
    );
    expect(enqueued.every(({ isReleased, generation }) => isReleased && generation === 2)).toBe(true);
    const window = 2 * firstWindow;
    expect(await look()).toBe(0); // none is settled yet
    expect(await row()).toMatchObject({ release_window: firstWindow });
    await settleAll();
    expect(await look()).toBe(firstWindow);
    expect(await row()).toMatchObject({ release_window: window });
    await settleAll();
    expect(await look()).toBe(window);
    await settleAll();
    expect(await look()).toBe(100 - 2 * window);
    await settleAll();
    expect(count(await states(deliveries), 'delivered')).toBe(100);
    expect(await test.sql('SELECT FROM delivery WHERE held_for IS NOT NULL')).toEqual([]);
  });

  it.each([1, 9])(
    'of %s subscriptions are looked at again after a short pause as long as their windows grow and are small',
    async (many) => {
      await accept(2000, 'endpoint-parked');
      for (let others = 1; others < many; others++) await accept(200, 'endpoint-parked', await newSubscription());
      await look();
      const windows: number[] = [];
      scene.onPause = async () => {
        windows.push((await row())!.release_window);
        await settleAll();
        await lookIsDue();
      };
      await settleAll();
      await look();
      expect(windows.length).toBeGreaterThanOrEqual(4);
      expect(windows).toEqual([...new Set(windows)].toSorted((one, other) => one - other));
      expect(windows.at(-1)).toBeLessThan(512);
      expect((await row())!.release_window).toBeGreaterThanOrEqual(512);
    },
  );

  it('for a quick endpoint are looked at again after a short pause, also when the window is large', async () => {
    await accept(3000, 'endpoint-parked');
    await look();
    await test.sql('UPDATE held_subscription SET release_window = 600');
    const first = await look();
    const settled = async () => {
      await eventually(() => enqueued.length >= 512);
      await settleAll();
      await lookIsDue();
    };
    await settled();
    let pauses = 0;
    scene.onPause = async () => {
      if (++pauses < 3) await settled();
      else await test.sql(`UPDATE held_subscription SET look_at = now() + interval '5 minutes'`);
    };
    expect(await releaser.releaseHeld(running)).toBeGreaterThan(2 * first);
    expect(pauses).toBe(3);
  });

  it('are looked at 17 times in one round at most, and again in the next', async () => {
    await accept(40, 'endpoint-parked');
    await look();
    const aQuickOne = () =>
      test.sql('UPDATE held_subscription SET look_at = now(), release_window = 1, outstanding = 600');
    scene.onPause = async () => {
      await eventually(() => enqueued.length > 0);
      await settleAll();
      await aQuickOne();
    };
    await scene.onPause();
    expect(await releaser.releaseHeld(running)).toBe(17);
    await scene.onPause();
    expect(await releaser.releaseHeld(running)).toBeGreaterThan(0);
  });

  it('that find no room a second time halve the window, once for all that come back together', async () => {
    await accept(40, 'endpoint-parked');
    await look();
    await settleAll();
    await look();
    await Promise.all(enqueued.splice(0).map((each) => test.holds.hold(each, 'endpoint-busy')));
    expect(await row()).toEqual({ release_window: firstWindow, is_backlog: true });
  });

  it('that find no room again and again are not taken for settled: one call at a time has one released at a time', async () => {
    await accept(40, 'endpoint-parked');
    await test.sql('UPDATE held_subscription SET release_window = 4');
    const findNoRoom = async (released: Delivery[]) => {
      await Promise.all(released.map((each) => test.holds.hold(each, 'endpoint-busy')));
      await test.sql(`UPDATE held_subscription SET shrunk_at = now() - interval '2 s'`);
    };
    expect(await look()).toBe(4);
    await findNoRoom(enqueued.splice(1)); // the first has its call open
    expect(await look()).toBe(1);
    expect(await row()).toMatchObject({ release_window: 2 });
    await findNoRoom(enqueued.splice(1));
    expect(await look()).toBe(0);
    expect(await row()).toMatchObject({ release_window: 1 });
    await settleAll();
    expect(await look()).toBe(1);
    expect(await row()).toMatchObject({ release_window: 2 });
  });

  it('sent at most once count as released until their call has ended', async () => {
    await accept(40, 'endpoint-parked');
    await test.sql('UPDATE held_subscription SET release_window = 1');
    expect(await look()).toBe(1);
    const [called] = enqueued.splice(0);
    expect(await test.claims.claim(called!, hourMs)).toBe(true);
    expect(await look()).toBe(0);
    expect(await releaser.findLeft()).toBe('held');
    await test.sql(`UPDATE delivery SET state = 'cancelled', held_for = NULL WHERE state = 'held'`);
    expect(await releaser.findLeft()).toBe('released');
    await test.settlements.settle({ ...delivered(called!), from: 'sending' });
    expect(await releaser.findLeft()).toBe('nothing');
  });

  it('of a subscription with a backlog are one no longer when the last was released', async () => {
    const [one] = await accept(1);
    await test.holds.hold(one!, 'endpoint-busy');
    await look();
    expect(await row()).toMatchObject({ is_backlog: false });
  });

  it('of a paused subscription stay, and go out oldest first when it is resumed', async () => {
    const paused = await newSubscription({ pausedAt: new Date() });
    const deliveries = await accept(5, 'paused', paused);
    expect(await look()).toBe(0);
    await test.sql('UPDATE catalogue SET version = version + 1');
    await test.sql(
      `UPDATE subscription SET paused_at = NULL, version = (SELECT version FROM catalogue) WHERE id = $1`,
      [paused],
    );
    // In another process: this one has not read it yet.
    await test.postgres.dataSource.transaction((manager) => lookNow(manager, [paused]));
    expect(await releaser.releaseHeld(running)).toBe(5);
    expect(enqueued.map(({ notificationId }) => notificationId).toSorted()).toEqual(
      deliveries.map(({ notificationId }) => notificationId),
    );
  });

  it('of a subscription that is paused while it is looked at stay, also those that come after the pause', async () => {
    const before = await accept(2, 'endpoint-busy');
    await test.sql('UPDATE subscription SET paused_at = now() WHERE id = $1', [subscription]); // the dispatcher has not read it yet
    const after = await accept(1, 'paused');
    expect(await look()).toBe(0);
    expect(await states([...before, ...after])).toEqual(['held', 'held', 'held']);
  });

  it('are looked for in the subscriptions that are not paused, some of them at a time', async () => {
    const others = [await newSubscription(), await newSubscription({ pausedAt: new Date() }), await newSubscription()];
    for (const id of others) await accept(1, 'endpoint-busy', id);
    const pages: string[][] = [];
    for await (const page of readNotPaused(test.postgres, 1)) pages.push(page);
    expect(pages.flat()).toEqual([others[0]!, others[2]!].toSorted());
    expect(pages.map(({ length }) => length).toSorted()).toEqual([0, 0, 1, 1]); // the last is empty
  });

  it('are left to be released, or on their way, but for those of a subscription that is paused or parked', async () => {
    expect(await releaser.findLeft()).toBe('nothing');
    const deliveries = await accept(1, 'endpoint-busy');
    expect(await releaser.findLeft()).toBe('held');
    await look();
    expect(await releaser.findLeft()).toBe('released');
    await test.holds.hold(enqueued[0]!, 'endpoint-busy');
    expect([await states(deliveries), await releaser.findLeft()]).toEqual([['held'], 'held']);
    await openEndpoints.open(origin, 'down', 3);
    expect(await releaser.findLeft()).toBe('nothing');
    await openEndpoints.reset([origin], () => Promise.resolve());
    await test.sql('UPDATE subscription SET paused_at = now() WHERE id = $1', [subscription]);
    expect(await releaser.findLeft()).toBe('nothing');
  });

  it('of a subscription with a rate are released as fast as that, with what it earned since the last look', async () => {
    const limited = await newSubscription({ ratePerSecond: 20 });
    await accept(100, 'rate', limited);
    const earn = (seconds: number) =>
      test.sql(`UPDATE held_subscription SET credited_at = now() - $1 * interval '1 s', rate_credit = 0`, [seconds]);
    await earn(0.3);
    expect(await look()).toBeGreaterThanOrEqual(6);
    await settleAll();
    await earn(3600); // no more at once than one and half a second's worth
    expect(await look()).toBe(11);
  });

  it('of a subscription with a slow rate go at once where none was held for a while, whoever holds them', async () => {
    const slow = () => newSubscription({ ratePerSecond: 0.02 });
    const [one] = await test.accept();
    const subscriptionId = await slow();
    await test.sql('UPDATE delivery SET subscription_id = $1', [subscriptionId]);
    await test.holds.hold({ ...one!, subscriptionId }, 'rate');
    await accept(2, 'rate', await slow());
    expect(await look()).toBe(2);
    expect(await look()).toBe(0);
  });

  it('of a subscription with a slow rate go no faster because nothing was held for a while', async () => {
    const slow = await newSubscription({ ratePerSecond: 0.001 });
    await accept(1, 'rate', slow);
    expect(await look()).toBe(1);
    await settleAll();
    await test.sql(
      `UPDATE held_subscription SET held_at = now() - interval '10 min', credited_at = credited_at - interval '10 min'`,
    );
    expect(await look()).toBe(0);
    await accept(1, 'rate', slow);
    expect(await look()).toBe(0);
    await test.sql(
      `UPDATE held_subscription SET held_at = now() - interval '17 min', credited_at = credited_at - interval '7 min'`,
    );
    expect(await look()).toBe(1);
    await settleAll();
    await test.sql(
      `UPDATE held_subscription SET held_at = now() - interval '17 min', credited_at = credited_at - interval '17 min'`,
    );
    await look();
    expect(await row(slow)).toBeUndefined();
  });

  it('of several subscriptions that are looked at together go each as its own window, rate and endpoint allow', async () => {
    const [parked, well] = ['http://parked.example', 'http://well.example'];
    const paused = await newSubscription({ pausedAt: new Date() });
    const limited = await newSubscription({ ratePerSecond: 20 });
    const others: string[] = [];
    for (const to of [`${parked}/one`, `${parked}/two`, well, well]) others.push(await newSubscription({ url: to }));
    for (const id of [paused, limited, ...others]) await accept(20, 'endpoint-parked', id);
    await test.sql(`UPDATE held_subscription SET credited_at = now() - interval '1 hour', rate_credit = 0`);
    await openEndpoints.open(parked, 'no answer', 5);
    await probeIsDue();
    expect(await look()).toBe(11 + 1 + 2 * firstWindow);
    const released = (id: string) => enqueued.filter(({ subscriptionId }) => subscriptionId === id).length;
    expect([paused, limited, ...others.slice(2)].map(released)).toEqual([0, 11, firstWindow, firstWindow]);
    // One probe, of whichever of its two subscriptions.
    expect(released(others[0]!) + released(others[1]!)).toBe(1);
    const probes = enqueued.filter(({ isProbe }) => isProbe).map(({ subscriptionId }) => subscriptionId);
    expect(probes).toHaveLength(1);
    expect(others.slice(0, 2)).toContain(probes[0]);
    expect(await row(others[2])).toMatchObject({ release_window: firstWindow });
    await settleAll();
    await look();
    expect(others.slice(2).map(released)).toEqual([20 - firstWindow, 20 - firstWindow]);
  });

  it('go out for the others where the statement that releases some of them fails, and those follow in their window', async () => {
    const other = await newSubscription();
    for (const id of [subscription, other]) await accept(5, 'endpoint-parked', id);
    // Each so many that they share no statement.
    await test.sql('UPDATE held_subscription SET release_window = 3000');
    const query = test.postgres.query.bind(test.postgres);
    let isFailing = true;
    vi.spyOn(test.postgres, 'query').mockImplementation((statement, values) => {
      if (!isFailing || statement.name !== 'release') return query(statement, values);
      isFailing = false;
      return Promise.reject(new Error('it took too long'));
    });
    try {
      await expect(look()).rejects.toThrow('it took too long');
    } finally {
      vi.restoreAllMocks();
    }
    expect(enqueued).toHaveLength(5);
    const failed = enqueued[0]!.subscriptionId === other ? subscription : other;
    expect(await row(failed)).toMatchObject({ release_window: 3000 });
    expect(await look()).toBe(5);
    expect(new Set(enqueued.map(({ subscriptionId }) => subscriptionId))).toEqual(new Set([subscription, other]));
  });

  it('of which many may go wait while the lane of retries and probes is full; a probe goes', async () => {
    const parked = await newSubscription({ url: 'http://parked.example/' });
    await accept(3, 'endpoint-parked', parked);
    await accept(700, 'endpoint-busy');
    await openEndpoints.open('http://parked.example', 'no answer', 5);
    await probeIsDue();
    await test.sql('UPDATE held_subscription SET release_window = 2048, look_at = now()');
    const queue = new InProcessDeliveryQueue(test.heartbeat.processId, 100_000);
    const busy = newReleaser(queue);
    const depth = vi.spyOn(queue, 'depth').mockResolvedValue(32);
    expect(await busy.releaseHeld(running)).toBe(1);
    expect(enqueued.splice(0)).toMatchObject([{ subscriptionId: parked, isProbe: true }]);
    depth.mockResolvedValue(24);
    const again = () =>
      test.sql('UPDATE held_subscription SET look_at = now() WHERE subscription_id = $1', [subscription]);
    await again();
    expect(await busy.releaseHeld(running)).toBe(512);
    depth.mockRestore();
    await again();
    expect(await busy.releaseHeld(running)).toBe(188);
  });

  it('are not forgotten while one is held, and their subscription’s row goes long after the last', async () => {
    const [one] = await accept(1, 'endpoint-parked');
    const age = () => test.sql(`UPDATE held_subscription SET held_at = now() - interval '1 hour'`);
    await age();
    await forgetHeldSubscriptions(test.postgres, [subscription], 60_000);
    expect(await row()).toBeDefined();
    await look();
    expect(enqueued).toHaveLength(1);
    await test.settlements.settle(delivered({ ...one!, generation: 2 }));
    await test.sql('UPDATE held_subscription SET held_at = now()');
    await forgetHeldSubscriptions(test.postgres, [subscription], 60_000);
    expect(await row()).toBeDefined();
    await age();
    await forgetHeldSubscriptions(test.postgres, [subscription], 60_000);
    expect(await row()).toBeUndefined();
  });

  it('are looked for less and less often where none was held for a while, until their row goes', async () => {
    await accept(1, 'endpoint-busy');
    await look();
    await settleAll();
    const pauses: number[] = [];
    for (const quietSeconds of [1, 5, 11, 25, 110, 115]) {
      await test.sql(`UPDATE held_subscription SET held_at = now() - $1 * interval '1 s'`, [quietSeconds]);
      expect(await look()).toBe(0);
      const [next] = await test.sql<{ seconds: number }>(
        'SELECT extract(epoch FROM look_at - now())::float8 AS seconds FROM held_subscription',
      );
      pauses.push(next!.seconds);
    }
    // In real time, in which these looks may have been slow.
    const atMost = [1, 1, 20, 35, 10, 5];
    pauses.forEach((seconds, nr) => expect(seconds).toBeLessThanOrEqual(atMost[nr]!));
    expect(pauses[2]).toBeGreaterThan(5);
    expect(pauses[3]).toBeGreaterThan(15);
    await test.sql(`UPDATE held_subscription SET held_at = now() - interval '121 s'`);
    await look();
    expect(await row()).toBeUndefined();
  });

  it('are looked at soon although none was held for a while, whoever holds one', async () => {
    const [one] = await accept(1);
    const quiet = () =>
      test.sql(
        `INSERT INTO held_subscription (subscription_id, held_at, look_at)
         VALUES ($1, now() - interval '30 s', now() + interval '30 s')
         ON CONFLICT (subscription_id) DO UPDATE SET held_at = EXCLUDED.held_at, look_at = EXCLUDED.look_at`,
        [subscription],
      );
    const hold: (() => Promise<unknown>)[] = [
      () => test.holds.hold(one!, 'endpoint-busy'),
      () => accept(1, 'endpoint-parked'),
    ];
    for (const holdOne of hold) {
      await quiet();
      expect(await releaser.releaseHeld(running)).toBe(0);
      await holdOne();
      expect(await releaser.releaseHeld(running)).toBe(1);
      await settleAll();
    }
  });

  it('make no look due where one comes soon anyway: another process may be making it', async () => {
    await accept(1, 'endpoint-busy');
    await test.sql(`UPDATE held_subscription SET look_at = now() + interval '5 minutes'`);
    await accept(1, 'endpoint-busy');
    expect(await releaser.releaseHeld(running)).toBe(0);
  });

  describe('before Postgres’ clock was set back by an hour', () => {
    const setBack = () =>
      test.sql(`UPDATE held_subscription SET
        look_at = look_at + interval '1 hour', held_at = held_at + interval '1 hour', credited_at = credited_at + interval '1 hour',
        shrunk_at = now() + interval '1 hour', release_window = 4`);

    it('are released at once, and the window grows', async () => {
      await accept(100, 'endpoint-busy');
      await setBack();
      expect(await releaser.releaseHeld(running)).toBe(4);
      await settleAll();
      await look();
      expect((await row())!.release_window).toBeGreaterThan(4);
    });

    it('are released at their rate', async () => {
      const slow = await newSubscription({ ratePerSecond: 1 });
      await accept(10, 'rate', slow);
      await setBack();
      expect(await releaser.releaseHeld(running)).toBe(1);
    });

    it('have their endpoint probed, and closed', async () => {
      await accept(1, 'endpoint-parked');
      await openEndpoints.open(url, 'HTTP 503', 5);
      await setBack();
      await test.sql(`UPDATE endpoint SET
        opened_at = now() + interval '1 hour', next_probe_at = now() + interval '1 hour', probing_until = now() + interval '1 hour'`);
      await openEndpoints.refresh();
      expect(await releaser.releaseHeld(running)).toBe(1);
      expect(enqueued).toMatchObject([{ isProbe: true }]);
      // Its receiver asks to be left alone for ten minutes, and had asked before.
      await test.sql(
        `UPDATE endpoint SET next_probe_at = now() + interval '3 days', asked_until = now() + interval '3 days'`,
      );
      await openEndpoints.open(url, 'HTTP 429', 1, 600_000);
      await openEndpoints.endProbe(url, 500);
      await openEndpoints.refresh();
      const inMs = openEndpoints.list()[0]!.nextProbeAt.getTime() - (await test.now());
      expect(Math.round(inMs / 60_000)).toBe(10);
      await test.sql(`UPDATE endpoint SET next_probe_at = now() + interval '1 hour', asked_until = NULL`);
      expect(await closeEndpoints((...asked) => test.postgres.query(...asked), [url], false)).toHaveLength(1);
    });
  });

  it('are due when they are no longer worth sending, and a worker ends them', async () => {
    const item = { ...newNotification(0), subscriptionIds: [subscription], expiresAt: Date.now() + hourMs };
    await test.acceptAll([{ ...item, heldFor: new Map([[subscription, 'paused']]) }]);
    expect(await freeHeldExpired(test.postgres, 10)).toBe(0);
    await test.sql(`UPDATE delivery SET expires_at = now() - interval '1 s'`);
    expect(await freeHeldExpired(test.postgres, 10)).toBe(1);
    expect(await test.sql('SELECT state, next_at <= now() AS due FROM delivery')).toEqual([
      { state: 'waiting', due: true },
    ]);
  });

  it('of a parked endpoint are due once they have waited for as long as their retry policy tries', async () => {
    const deliveries = await accept(3, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    expect(await heldTooLong.free(running)).toBe(0);
    const now = await test.now();
    const tooLong = { subscriptionId: subscription, heldBefore: now + hourMs, reason: 'held for long' };
    const isNone = { freed: 0, next: undefined };
    expect(await freeHeldTooLong(test.postgres, { ...tooLong, heldBefore: now - hourMs }, undefined, 10)).toEqual(
      isNone,
    );
    const { freed, next } = await freeHeldTooLong(test.postgres, tooLong, undefined, 2);
    expect([freed, next]).toEqual([2, deliveries[1]!.notificationId]);
    expect(await states(deliveries)).toEqual(['waiting', 'waiting', 'held']);
    expect(
      await test.sql(`SELECT expires_at <= now() AS expired, last_error FROM delivery WHERE state = 'waiting'`),
    ).toEqual(Array.from({ length: 2 }, () => ({ expired: true, last_error: 'held for long' })));
  });

  it('of an endpoint that asked to be left alone for longer than their policy tries are kept until it may be probed', async () => {
    await accept(3, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    const at = (hours: number) => vi.spyOn(test.ledgerClock, 'now').mockReturnValue(Date.now() + hours * hourMs);
    await test.sql("UPDATE endpoint SET asked_until = now() + interval '24 hours'");
    await openEndpoints.refresh();
    at(23.97);
    expect(await heldTooLong.free(running)).toBe(0);
    at(24.01);
    expect(await heldTooLong.free(running)).toBe(3);
  });

  it('of an endpoint that is probed without a pause, since its calls take minutes, are too old when their policy says so', async () => {
    await accept(3, 'endpoint-parked');
    await openEndpoints.open(url, 'no answer', 5);
    // As while a probe is under way, at whatever time.
    const of = openEndpoints.of.bind(openEndpoints);
    vi.spyOn(openEndpoints, 'of').mockImplementation((one) => {
      const endpoint = of(one);
      return endpoint && { ...endpoint, leftAloneUntil: new Date(Date.now() + 48 * hourMs) };
    });
    vi.spyOn(test.ledgerClock, 'now').mockReturnValue(Date.now() + 24.01 * hourMs);
    expect(await heldTooLong.free(running)).toBe(3);
  });

  it('of an endpoint that asks to be left alone again and again are kept for a day more than their policy tries', async () => {
    await accept(3, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    vi.spyOn(test.ledgerClock, 'now').mockReturnValue(Date.now() + 24 * hourMs + 20_000);
    const openFor = (hours: number) =>
      test.sql(
        `UPDATE endpoint SET opened_at = now() - $1 * interval '1 hour', asked_until = now() + interval '24 hours 50 s'`,
        [hours],
      );
    await openFor(23);
    expect(await heldTooLong.free(running)).toBe(0);
    await openFor(25);
    expect(await heldTooLong.free(running)).toBe(3);
  });

  it('of a parked endpoint are not too old for their retry policy because their subscription was paused for as long', async () => {
    const deliveries = await accept(2, 'endpoint-parked');
    const tooLong = { subscriptionId: subscription, heldBefore: (await test.now()) + hourMs, reason: 'held for long' };
    await test.sql("UPDATE held_subscription SET resumed_at = now() + interval '2 hours'");
    // Nothing is looked at, so there is nothing to go on after.
    expect(await freeHeldTooLong(test.postgres, tooLong, undefined, 1)).toEqual({ freed: 0, next: undefined });
    await test.sql('UPDATE held_subscription SET resumed_at = now()');
    expect((await freeHeldTooLong(test.postgres, tooLong, undefined, 10)).freed).toBe(2);
    expect(await states(deliveries)).toEqual(['waiting', 'waiting']);
  });

  it('of a parked endpoint that a replay has held only now are passed over, so many with each statement, to those that have waited for too long', async () => {
    const deliveries = await accept(5, 'endpoint-parked');
    const heldLater = deliveries.slice(0, 4).map(({ notificationId }) => notificationId);
    await test.sql("UPDATE delivery SET held_since = now() + interval '2 hours' WHERE notification_id = ANY ($1)", [
      heldLater,
    ]);
    const tooLong = { subscriptionId: subscription, heldBefore: (await test.now()) + hourMs, reason: 'held for long' };
    const first = await freeHeldTooLong(test.postgres, tooLong, undefined, 3);
    expect(first).toEqual({ freed: 0, next: heldLater[2] });
    expect(await freeHeldTooLong(test.postgres, tooLong, first.next, 3)).toEqual({ freed: 1, next: undefined });
    expect(await states(deliveries)).toEqual(['held', 'held', 'held', 'held', 'waiting']);
  });

  it('of a parked endpoint that have waited for too long are found behind more than one statement looks at', async () => {
    await accept(1100, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    await test.sql(
      `UPDATE delivery SET held_since = now() + interval '20000 hours'
       WHERE notification_id IN (SELECT notification_id FROM delivery ORDER BY notification_id LIMIT 1050)`,
    );
    const later = vi.spyOn(test.ledgerClock, 'now').mockReturnValue(Date.now() + 10_000 * hourMs);
    expect(await heldTooLong.free(running)).toBe(50);
    later.mockRestore();
  });

  it('of a parked endpoint that are in line have waited since they lined up, and end one after the other', async () => {
    const ordered = await newSubscription({ ordering: 'per-object' });
    await openEndpoints.open(url, 'HTTP 503', 5);
    const inOrder = { objectKey: randomUUID(), subscriptionIds: new Set([ordered]) };
    const items = Array.from({ length: 4 }, () => ({ ...newNotification(0), subscriptionIds: [ordered], inOrder }));
    for (const item of items) await test.acceptAll([item]);
    const [first, ...behind] = items.map(({ id }) => newDelivery({ notificationId: id, subscriptionId: ordered }));
    await test.holds.hold(first!, 'endpoint-parked');
    expect(await states(behind)).toEqual(['held', 'held', 'held']);
    const acceptedAt = await test.now();
    scene.onPause = async () => {
      const due = await handOutDue(test.postgres, 10, null);
      await Promise.all(due.deliveries.map((each) => test.settlements.settle(ended(each, 'expired'))));
      const next = await passTurns(test.postgres, due.deliveries, toBroker);
      await Promise.all(next.deliveries.map((each) => test.holds.hold(each, 'endpoint-parked')));
    };
    const policySeconds = longestParkedSeconds(new RetryPolicies(test.postgres, catalogue).for(ordered));
    vi.spyOn(test.ledgerClock, 'now').mockReturnValue(acceptedAt + 1 + policySeconds * 1000);
    const openedAt = async (ms: number) => {
      await test.sql('UPDATE endpoint SET opened_at = to_timestamp($1::float8 / 1000)', [ms]);
      await openEndpoints.refresh();
    };
    await openedAt(acceptedAt + 10); // it was away for less time than they have waited
    expect(await heldTooLong.free(running)).toBe(0);
    await openedAt(acceptedAt);
    expect(await heldTooLong.free(running)).toBe(4);
    expect(await states([first!, ...behind])).toEqual(['expired', 'expired', 'expired', 'expired']);
  });

  it('of a parked endpoint that have waited for too long are not all due together: others are due, too', async () => {
    await accept(2300, 'endpoint-parked');
    await openEndpoints.open(url, 'HTTP 503', 5);
    const due: number[] = [];
    scene.onPause = async () => {
      const [row] = await test.sql<{ count: number }>(
        `SELECT count(*)::int AS count FROM delivery WHERE state = 'waiting'`,
      );
      due.push(row!.count);
    };
    const later = vi.spyOn(test.ledgerClock, 'now').mockReturnValue(Date.now() + 10_000 * hourMs);
    expect(await heldTooLong.free(running)).toBe(2300);
    later.mockRestore();
    expect(due).toEqual([1000, 2000]);
  });
});
