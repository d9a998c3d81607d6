import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { ErrorClass } from '../../src/deliveries/error-class.js';
import type { Selection } from '../../src/deliveries/selection.js';
import { dayOfId, idAfter, lowestId } from '../../src/ledger/partitions.js';
import type { MeantCounter } from '../../src/replays/count-meant.service.js';
import { findOnDay } from '../../src/replays/find-meant.js';
import { meantBy } from '../../src/replays/replay.js';
import { Replays } from '../../src/replays/replays.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import type { TestLedger } from '../support/ledger.js';
import { hourMs, ReplayScene } from '../support/replay-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('a replay on the $name stack', (stack) => {
  const scene = new ReplayScene(stack);
  const { sql, newSubscription, notifications, dead, create, run, now } = scene;
  let test: TestLedger;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;
  let counter: MeantCounter;
  let replays: Replays;

  beforeAll(async () => {
    ({ test, catalogue, directory, counter, replays } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

  const group = (subscriptionId: string, errorClass: ErrorClass) => ({
    subscriptionId,
    state: 'failed' as const,
    errorClass,
  });
  const named = (notificationId: string, subscriptionId: string) => ({ notificationId, subscriptionId });

  it('finds the same by every route, and counts it beforehand', async () => {
    const [id, other] = [await newSubscription(), await newSubscription()];
    const early = await notifications(3, { agoMs: 2 * hourMs, channel: 'early' });
    const late = await notifications(3, { channel: 'late' });
    for (const subscription of [id, other]) {
      await dead([...early, late[0]!], subscription);
      await dead([late[1]!], subscription, { last_status: 'NULL', last_error: "'ECONNREFUSED: connect'" });
      await dead([late[2]!], subscription, {}, 'delivered');
    }
    const middle = new Date((await test.now()) - hourMs).toISOString();
    const many = [id, ...Array.from({ length: 10 }, () => randomUUID())];
    const expected: [Selection, boolean, number][] = [
      [{ subscriptions: [id] }, true, 5],
      [{ subscriptions: [id, id] }, true, 5],
      [{ subscriptions: many }, true, 5],
      [{ all: true }, true, 10],
      [{ subscriptions: [id] }, false, 6],
      [{ subscriptions: many, states: ['delivered'] }, false, 1],
      [{ channels: ['late'] }, true, 4],
      [{ channels: ['late'], subscriptions: [id] }, false, 3],
      [{ acceptedFrom: middle }, true, 4],
      [{ acceptedTo: middle }, false, 6],
      [{ errorClasses: ['connection'] }, true, 2],
      [{ errorClasses: ['status-5xx', 'connection'], subscriptions: [other], channels: ['late'] }, true, 2],
      [{ subscriptions: [randomUUID()] }, true, 0],
      [{ groups: [group(id, 'status-5xx')] }, true, 4],
      [{ groups: [id, other].map((each) => group(each, 'connection')) }, true, 2],
      [{ groups: [group(id, 'status-5xx'), group(id, 'connection')], channels: ['late'] }, true, 2],
      [{ groups: many.map((each) => group(each, 'status-5xx')) }, true, 4],
      [{ groups: [{ ...group(id, 'status-5xx'), state: 'unknown' }] }, true, 0],
      [{ deliveries: [id, other].map((each) => named(early[0]!, each)) }, true, 2],
      [{ deliveries: [early[1]!, late[0]!, late[2]!].map((each) => named(each, id)) }, true, 2],
      [{ deliveries: [named(early[0]!, id)], channels: ['late'] }, true, 0],
      [{ deliveries: [named(randomUUID(), id), named(late[2]!, other)], states: ['delivered'] }, false, 1],
    ];
    for (const [selection, onlyMissed, count] of expected) {
      const meant = [selection, onlyMissed, count];
      const {
        bySubscription,
        notifications: of,
        sample,
        ...dry
      } = await replays.dryRun('replay', selection, onlyMissed);
      expect([selection, onlyMissed, dry.count]).toEqual(meant);
      expect([...bySubscription.values()].reduce((sum, each) => sum + each, 0)).toBe(count);
      expect(of).toBe(count / (bySubscription.size || 1));
      expect(sample).toHaveLength(count);
      const before = await sql('SELECT * FROM delivery ORDER BY notification_id, subscription_id');
      const replay = await create(selection, { onlyMissed, confirm: count });
      expect([selection, onlyMissed, await run()]).toEqual(meant);
      expect(await now(replay)).toMatchObject({ state: 'done', found: count, done: count });
      await sql('DELETE FROM delivery');
      await sql('INSERT INTO delivery SELECT (json_populate_recordset(NULL::delivery, $1)).*', [
        JSON.stringify(before),
      ]);
    }
  });

  it('reads no more rows than it takes where nothing narrows it further, and else as many as it may', async () => {
    const [id, other] = [await newSubscription(), await newSubscription()];
    const ids = await notifications(12);
    for (const subscription of [id, other]) await dead(ids, subscription);
    const find = (selection: Selection, limit: number) =>
      findOnDay(
        (text, values) => test.postgres.query(text, values),
        dayOfId(ids[0]!),
        meantBy('replay', selection, true),
        { after: named(ids[0]!, lowestId), before: idAfter(ids[11]!), scan: 10, limit },
      );
    for (const selection of [{ subscriptions: [id] }, { subscriptions: [id, other] }, { all: true as const }]) {
      const { found, walked, reached } = await find(selection, 4);
      expect([selection, found.length, walked, reached?.notificationId]).toEqual([
        selection,
        4,
        4,
        found[3]!.notificationId,
      ]);
    }
    expect(await find({ subscriptions: [id] }, 100)).toMatchObject({ walked: 10, reached: named(ids[9]!, id) });
    const narrowed: Selection[] = [
      { subscriptions: [id], channels: ['cases'] },
      { subscriptions: [id], errorClasses: ['status-5xx'] },
      { groups: [group(id, 'status-5xx')] },
      { subscriptions: [id, ...Array.from({ length: 10 }, () => randomUUID())] },
    ];
    for (const selection of narrowed) expect([selection, (await find(selection, 4)).walked]).toEqual([selection, 10]);
  });

  it('of everything needs the count of the dry run, to a hundredth', async () => {
    const id = await newSubscription();
    await dead(await notifications(150), id);
    const all: Selection = { all: true };
    expect(await replays.dryRun('replay', all, true)).toMatchObject({ count: 150, needsConfirm: true });
    for (const confirm of [undefined, 0, 148, 152, 15_000])
      await expect(create(all, { confirm })).rejects.toMatchObject({
        code: 'selection-not-confirmed',
        detail: expect.stringContaining('150'),
      });
    await expect(create({ subscriptions: [id] }, { confirm: 7 })).rejects.toMatchObject({ status: 409 });
    expect((await create(all, { confirm: 151 })).counted).toBe(150);
  });

  it('of what is cancelled may mean fewer than were confirmed, which were delivered meanwhile, but not more', async () => {
    const id = await newSubscription();
    const ids = await notifications(150);
    await dead(ids, id, { ended_at: 'NULL', next_at: 'now()' }, 'waiting');
    const selection = { subscriptions: [id] };
    for (const confirm of [0, 148])
      await expect(create(selection, { kind: 'cancel', confirm })).rejects.toMatchObject({
        code: 'selection-not-confirmed',
      });
    expect((await create(selection, { kind: 'cancel', confirm: 15_000 })).counted).toBe(150);
  });

  it('that could not be counted to the end is confirmed by another count of that kind', async () => {
    const id = await newSubscription();
    await dead(await notifications(60), id);
    const limits = { deliveries: 40, notifications: 40, ms: 60_000 };
    const hasty = {
      now: () => counter.now(),
      count: (...[meant, range, subscription]: Parameters<MeantCounter['count']>) =>
        counter.count(meant, range, subscription, limits),
    } as MeantCounter;
    const hurried = new Replays(test.postgres, hasty, catalogue, directory);
    const selection = { subscriptions: [id] };
    for (const confirm of [undefined, 19])
      await expect(create(selection, { confirm }, hurried)).rejects.toMatchObject({
        code: 'selection-not-confirmed',
      });
    for (const confirm of [20, 55])
      expect(await create(selection, { confirm }, hurried)).toMatchObject({ counted: 40, isCountWhole: false });
  });

  it('says how far the dry run looked where it could not look at everything', async () => {
    const id = await newSubscription();
    const ids = await notifications(100);
    await dead(ids, id);
    const meant = meantBy('replay', { subscriptions: [id] }, true);
    const range = { after: { notificationId: ids[9]!, subscriptionId: id }, before: ids[90]! };
    const limits = { deliveries: 30, notifications: 30, ms: 60_000 };
    const some = await counter.count(meant, range, undefined, limits);
    expect(some).toMatchObject({ count: 30, notifications: 30 });
    expect(some.searchedTo).toBe(Number.parseInt(ids[39]!.replace('-', '').slice(0, 12), 16));
    expect(await counter.count(meant, range, undefined, { ...limits, deliveries: 1000 })).toMatchObject({
      count: 80,
      searchedTo: undefined,
    });
    expect((await counter.count(meant, range, undefined, { ...limits, ms: -1 })).count).toBe(0);
  });
});
