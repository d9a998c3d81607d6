import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import { DeadLetterGroups } from '../../src/dead-letters/dead-letter-groups.service.js';
import { dropExpired } from '../../src/ledger/drop-expired.js';
import {
  attachPartition,
  createPartition,
  lowestIdAt,
  partitionsBetween,
  type Partition,
} from '../../src/ledger/partitions.js';
import type { Replay } from '../../src/replays/replay.js';
import type { Replays } from '../../src/replays/replays.service.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import type { TestLedger } from '../support/ledger.js';
import { hourMs, ReplayScene, running } from '../support/replay-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('a day that is away, on the $name stack', (stack) => {
  const scene = new ReplayScene(stack);
  const { sql, newSubscription, notifications, dead, create, run, now, statesOf } = scene;
  let test: TestLedger;
  let replays: Replays;

  beforeAll(async () => {
    ({ test, replays } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

  const dayMs = 24 * hourMs;

  /** @returns its partitions, and a dead letter of it, of long ago */
  async function oldDay(daysAgo: number, subscriptionId: string) {
    const at = (await test.now()) - daysAgo * dayMs;
    const partitions = partitionsBetween(at, at);
    for (const partition of partitions) await sql(createPartition(partition));
    const old = uuidv7({ msecs: at });
    await insertNotifications(sql, [old]);
    await dead([old], subscriptionId, { ended_at: "now() - interval '20 days'" });
    return { partitions, old };
  }
  const leave = async (partitions: Partition[]) => {
    for (const { table, name } of partitions.toReversed()) await sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
  };
  const comeBack = async (partitions: Partition[]) => {
    for (const partition of partitions) await sql(attachPartition(partition));
  };
  async function drop(): Promise<string[]> {
    const events: string[] = [];
    const note = ({ event }: { event: string }) => void events.push(event);
    await dropExpired(test.postgres, 30, { log: note, error: note }, running);
    return events;
  }
  const stepNow = async () => {
    await sql('UPDATE replay SET next_step_at = now() WHERE next_step_at IS NOT NULL');
    await run();
  };

  it('is counted, waited for by a replay that means something of it, and brought back for that', async () => {
    const id = await newSubscription();
    const { partitions, old } = await oldDay(40, id);
    const [recent] = await notifications(1);
    await dead([recent!], id);
    await leave(partitions.slice(1)); // a backup reads the notifications
    expect(await replays.dryRun('replay', { subscriptions: [id] }, true)).toMatchObject({
      count: 2,
      searchedTo: undefined,
    });
    expect(await new DeadLetterGroups(test.postgres).find({ subscriptionId: id })).toMatchObject({
      groups: [{ count: 2, oldest: old, newest: recent }],
      isComplete: true,
    });
    const replay = await create({ subscriptions: [id] });
    await run();
    await stepNow();
    expect(await now(replay)).toMatchObject({ state: 'running', counted: 2, found: 0 });
    expect(await drop()).toEqual(['ledger.day-kept-unfinished']);
    await stepNow();
    expect(await now(replay)).toMatchObject({ state: 'done', found: 2, done: 2 });
    expect(await statesOf(id)).toEqual(['waiting', 'waiting']);
    await sql("UPDATE delivery SET state = 'delivered', next_at = NULL");
    expect(await drop()).toEqual(['ledger.day-dropped']);
  });

  it('keeps no replay waiting that means nothing of it, and none that only closes what it has', async () => {
    const [one, other] = [await newSubscription(), await newSubscription()];
    const { partitions } = await oldDay(41, one);
    await dead(await notifications(1), other);
    await leave(partitions);
    const ofOther = await create({ subscriptions: [other] });
    const closing = await create({ subscriptions: [one] }, { kind: 'close', note: 'seen' });
    await run();
    expect(await now(ofOther)).toMatchObject({ state: 'done', done: 1 });
    expect(await now(closing)).toMatchObject({ state: 'done', done: 1 });
    await comeBack(partitions);
    expect(await statesOf(one)).toEqual(['cancelled']);
    expect(await drop()).toEqual(['ledger.day-dropped']);
  });

  it('is kept for no replay that has not begun, is paused, or has come past it', async () => {
    const id = await newSubscription();
    await oldDay(42, id);
    const replay = await create({ subscriptions: [id] }, { kind: 'replay' });
    expect(await drop()).toEqual(['ledger.day-dropped']);
    await oldDay(42, id);
    await sql("UPDATE replay SET state = 'running', started_at = now()");
    expect(await drop()).toEqual(['ledger.day-kept-unfinished']);
    await replays.pause(replay.id);
    expect(await drop()).toEqual(['ledger.day-dropped']);
    await oldDay(42, id);
    await replays.resume(replay.id);
    await sql('UPDATE replay SET after_notification = $1', [lowestIdAt((await test.now()) - dayMs)]);
    expect(await drop()).toEqual(['ledger.day-dropped']);
  });

  it.each([
    ['cancelled', 43, ({ id }: Replay) => replays.cancel(id)],
    [
      'stopped',
      44,
      async () => {
        await sql("UPDATE replay SET stop_at = now() - interval '1 second', next_step_at = now()");
        await run();
      },
    ],
  ] as const)('is kept for no replay that was %s before it came to it', async (state, daysAgo, end) => {
    const id = await newSubscription();
    await oldDay(daysAgo, id);
    const replay = await create({ subscriptions: [id] });
    await sql("UPDATE replay SET state = 'running', started_at = now()");
    expect(await drop()).toEqual(['ledger.day-kept-unfinished']);
    await end(replay);
    expect(await now(replay)).toMatchObject({ state, done: 0 });
    expect(await drop()).toEqual(['ledger.day-dropped']);
  });
});
