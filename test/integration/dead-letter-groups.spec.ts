import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { DeadLetterGroups } from '../../src/dead-letters/dead-letter-groups.service.js';
import { deadLettersToShow } from '../../src/dead-letters/dead-letters-io.js';
import { KeptGroups } from '../../src/dead-letters/kept-groups.service.js';
import { lowestIdAt, timeOfId } from '../../src/ledger/partitions.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Replays } from '../../src/replays/replays.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { eventually } from '../support/eventually.js';
import type { TestLedger } from '../support/ledger.js';
import { hourMs, ReplayScene } from '../support/replay-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('dead letters in groups, on the $name stack', (stack) => {
  const scene = new ReplayScene(stack);
  const { sql, newSubscription, notifications, dead, create } = scene;
  let test: TestLedger;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;
  let replays: Replays;

  beforeAll(async () => {
    ({ test, catalogue, directory, replays } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

  const refused = { last_status: 'NULL', last_error: "'ECONNREFUSED: connect'" };
  const find = (...args: Parameters<DeadLetterGroups['find']>) => new DeadLetterGroups(test.postgres).find(...args);
  const counts = ({
    groups,
  }: {
    groups: { subscriptionId: string; state: string; errorClass: string; count: number }[];
  }) => groups.map(({ subscriptionId, state, errorClass, count }) => [subscriptionId, state, errorClass, count]);

  it('are counted by subscription, state and error class, with the oldest, the newest and what it died of', async () => {
    const [id, deleted] = [await newSubscription(), randomUUID()];
    const [tomorrow, today] = [await notifications(2, { agoMs: -24 * hourMs }), await notifications(4)];
    await dead([...today.slice(0, 3), ...tomorrow], id);
    await dead([today[3]!], id, refused);
    await dead([today[0]!], deleted, refused, 'unknown');
    await dead([today[1]!], deleted, {}, 'expired');
    await dead([today[2]!], deleted, {}, 'delivered');
    await dead([today[3]!], deleted, {}, 'cancelled');
    await sql(
      `UPDATE delivery SET last_error = 'HTTP 500: the newest', ended_at = '2026-11-22T10:00:00Z' WHERE notification_id = $1`,
      [tomorrow[1]],
    );
    const found = await find({});
    expect(new Set(counts(found))).toEqual(
      new Set([
        [id, 'failed', 'status-5xx', 5],
        [id, 'failed', 'connection', 1],
        [deleted, 'unknown', 'connection', 1],
        [deleted, 'expired', 'expired', 1],
      ]),
    );
    expect(found).toMatchObject({ isComplete: true, searchedTo: undefined });
    await catalogue.refresh();
    const [most, ...others] = deadLettersToShow({ ...found, asOf: new Date() }, (each) => directory.find(each)).groups;
    expect(most).toMatchObject({
      subscription: 'active',
      callbackUrl: `http://${id}.example/`,
      owner: 'owner',
      isAtLeast: false,
      oldestAcceptedAt: new Date(timeOfId(today[0]!)).toISOString(),
      newestAcceptedAt: new Date(timeOfId(tomorrow[1]!)).toISOString(),
      newest: { notificationId: tomorrow[1], lastStatus: 500, lastError: 'HTTP 500: the newest' },
    });
    expect(others.filter(({ subscription }) => subscription === 'deleted')).toMatchObject(
      Array(2).fill({ subscriptionId: deleted, callbackUrl: null, owner: null }),
    );
  });

  it('are narrowed by subscription, channel, state, error class, replay and time', async () => {
    const [id, other] = [await newSubscription(), await newSubscription()];
    const [early, late] = [
      await notifications(2, { agoMs: hourMs, channel: 'early' }),
      await notifications(1, { channel: 'late' }),
    ];
    await dead([...early, ...late], id);
    await dead(early, other, refused);
    const replay = await create({ subscriptions: [other] }, { kind: 'close', note: 'seen' });
    await sql('UPDATE delivery SET replay_id = $1 WHERE notification_id = $2', [replay.id, early[0]]);
    expect(await replays.dryRun('replay', { replay: replay.id, subscriptions: [id] }, true)).toMatchObject({
      count: 1,
    });
    const middle = early[1]!;
    const sought: [Parameters<typeof find>[0], [string, number][]][] = [
      [
        {},
        [
          [id, 3],
          [other, 2],
        ],
      ],
      [{ subscriptionId: id }, [[id, 3]]],
      [{ subscriptionId: id, state: 'unknown' }, []],
      [{ state: 'failed', errorClass: 'connection' }, [[other, 2]]],
      [{ channel: 'late' }, [[id, 1]]],
      [{ channel: 'early', errorClass: 'status-5xx' }, [[id, 2]]],
      [{ replayId: replay.id, subscriptionId: id }, [[id, 1]]],
      [{ from: middle, subscriptionId: id }, [[id, 2]]],
      [{ before: middle, subscriptionId: other }, [[other, 1]]],
      [{ from: late[0]!, before: middle }, []],
    ];
    for (const [each, expected] of sought)
      expect([each, (await find(each)).groups.map(({ subscriptionId, count }) => [subscriptionId, count])]).toEqual([
        each,
        expected,
      ]);
  });

  it('say where there may be more, and count those of which there are few', async () => {
    const [many, few] = [await newSubscription(), await newSubscription()];
    const [old, recent] = [await notifications(300), await notifications(20, { agoMs: -24 * hourMs })];
    await dead(old, many);
    await dead([old[0]!, recent[0]!], few, refused);
    const limits = { rows: 150, rowsOfChannel: 150, heads: 100, ms: 60_000 };
    const { groups, ...rest } = await find({}, limits);
    expect(rest).toEqual({ isComplete: false, searchedTo: undefined });
    expect(groups.map(({ subscriptionId, count, isAtLeast }) => [subscriptionId, count, isAtLeast])).toEqual([
      [many, 148, true],
      [few, 2, false],
    ]);
    expect(await find({ subscriptionId: few, channel: 'cases' }, limits)).toMatchObject({ isComplete: true });
    // The newest day has one head; there is room for no other.
    const cut = await find({}, { ...limits, heads: 2 });
    expect(cut.isComplete).toBe(false);
    expect(cut.groups.every(({ isAtLeast }) => isAtLeast)).toBe(true);
    expect(counts(cut)).toContainEqual([few, 'failed', 'connection', expect.any(Number)]);
    expect(cut.searchedTo).toBeGreaterThan(timeOfId(old[299]!));
    // Those that have some in another state only take room as well.
    expect(await find({ state: 'unknown' }, { ...limits, heads: 2 })).toMatchObject({
      groups: [],
      isComplete: false,
    });
    const { searchedTo } = await find({}, { ...limits, heads: 1 });
    expect(new Date(searchedTo!).toISOString()).toMatch(/^20/);
    expect(await find({}, { ...limits, ms: -1 })).toEqual({
      groups: [],
      isComplete: false,
      searchedTo: expect.any(Number),
    });
  });

  it('are as of the time of Postgres, whatever the clock of the process says', async () => {
    const ledgerMs = Date.parse('2025-06-01T12:00:00Z');
    const ledgerClock = { now: () => ledgerMs } as LedgerClock;
    const kept = new KeptGroups(new DeadLetterGroups(test.postgres), ledgerClock);
    expect((await kept.find({})).asOf).toEqual(new Date(ledgerMs));
  });

  it('are found once for all who look at the same moment, and again after that', async () => {
    const id = await newSubscription();
    await dead(await notifications(1), id);
    const kept = new KeptGroups(new DeadLetterGroups(test.postgres), test.ledgerClock);
    const [one, other] = [kept.find({}), kept.find({})];
    expect(one).toBe(other);
    expect(kept.find({ subscriptionId: id })).not.toBe(one);
    await one;
    await sql(`UPDATE delivery SET state = 'delivered'`);
    await eventually(async () => (await kept.find({})).groups.length === 0, 'it to be found again');
    // Nothing is kept of what nobody is given any more.
    const sizes = () => (Reflect.get(kept, 'kept') as Map<string, unknown>).size;
    for (let minute = 0; minute < 5; minute++) await kept.find({ from: lowestIdAt(minute * 60_000) });
    await eventually(async () => {
      await kept.find({});
      return sizes() === 1;
    }, 'the others to be forgotten');
  });
});
