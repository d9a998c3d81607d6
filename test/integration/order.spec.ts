import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { Turns } from '../../src/delivery/turns.service.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement, type Values } from '../../src/infra/postgres/statement.js';
import { cancelNext } from '../../src/ledger/cancel-erased.js';
import { cancel } from '../../src/ledger/cancel.js';
import type { Delivery, DeliveryKey, HandedOut } from '../../src/ledger/delivery.js';
import { endSending } from '../../src/ledger/end-sending.js';
import { freeQueuedBefore } from '../../src/ledger/free-queued-before.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import type { HandedOutTogether } from '../../src/ledger/handed-out.js';
import { Holds } from '../../src/ledger/hold.service.js';
import { lineUpDue } from '../../src/ledger/line-up.js';
import { dayOfId, partitionOf } from '../../src/ledger/partitions.js';
import { passTurns, passTurnsOnce } from '../../src/ledger/pass-turn.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { stillQueued } from '../../src/ledger/still-queued.js';
import { walkDeliveries } from '../../src/ledger/walk-deliveries.js';
import type { Enqueuer } from '../../src/queue/enqueuer.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { eventually } from '../support/eventually.js';
import { delivered, ended, retried, type TestLedger, toBroker } from '../support/ledger.js';
import { hourMs, OrderScene } from '../support/order-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('order by object on the $name stack', (stack) => {
  const scene = new OrderScene(stack);
  const { about, asDelivery, accept, stateOf, statesOf, settle, pass, passLeft, turns, isLockAwaited } = scene;
  let test: TestLedger;
  let subscriptionId: string;

  beforeAll(async () => {
    test = await scene.open();
  });
  beforeEach(async () => {
    subscriptionId = await scene.clear();
  });
  afterAll(() => scene.close());

  it('keeps a later one about the same object in line until the earlier one is delivered, and no other', async () => {
    const first = await accept('a');
    const second = await accept('a');
    const other = await accept('b');
    const [unordered] = await test.accept(1);
    expect(await statesOf(first, second, other)).toEqual(['queued', 'held for order', 'queued']);
    expect(await test.state(unordered!)).toBe('queued');
    expect(await pass(first)).toEqual([]); // it has not ended
    await settle(delivered(first));
    expect(await statesOf(first, second)).toEqual(['delivered', 'held for order']);
    expect(await pass(first)).toEqual([second.notificationId]);
    expect(await test.row(second)).toMatchObject({ state: 'queued', generation: 2 });
    await settle(delivered({ ...second, generation: 2 }));
    expect(await pass(second, first)).toEqual([]);
    expect(await turns()).toEqual([{ notification_id: other.notificationId }]);
  });

  it('passes on the turns of others while a long line of which much was cancelled is worked off, and that too', async () => {
    const long: Delivery[] = [];
    for (let nr = 0; nr < 12; nr++) long.push(await accept('a'));
    const [short, next] = [await accept('b'), await accept('b')];
    for (const each of long.slice(1, -1)) await cancel(test.postgres, each);
    await settle(delivered(long[0]!));
    await settle(delivered(short));
    const published: string[] = [];
    const places: number[] = [];
    const enqueuer = {
      isAccepting: true,
      process: null,
      enqueueAll: async ({ deliveries }: HandedOutTogether) => {
        published.push(...deliveries.map(({ notificationId }) => notificationId));
        if (deliveries.length > 0) places.push((await test.sql('SELECT FROM in_line')).length);
      },
    } as unknown as Enqueuer;
    const ordered = { find: () => ({ ordering: 'per-object' }) } as unknown as SubscriptionDirectory;
    const passing = new Turns(ordered, test.postgres, enqueuer);
    passing.passOn(long[0]!);
    passing.passOn(short);
    await eventually(() => published.length === 2);
    expect(published).toEqual([next.notificationId, long.at(-1)!.notificationId]);
    await eventually(() => places.length === 2);
    expect(places[0]).toBeGreaterThan(1);
    await passing.onApplicationShutdown();
  });

  it('leaves no place in line to deliveries that end because their notifications are erased', async () => {
    const [first, ...others] = [await accept('a'), await accept('a'), await accept('a')];
    const ids = others.map(({ notificationId }) => notificationId);
    const day = dayOfId(first!.notificationId);
    const cancel = (values: Values) =>
      test.postgres.transaction(async (query) => (await cancelNext(query, day, values)).reached);
    await walkDeliveries(ids, cancel, { stopping: new AbortController().signal });
    expect(await statesOf(...others)).toEqual(['cancelled', 'cancelled']);
    expect(await test.sql('SELECT FROM in_line')).toEqual([]);
  });

  it('passes on the turn of an object about which something is published before each of the statements that do so', async () => {
    const [first, second] = [await accept('a'), await accept('a')];
    await settle(delivered(first));
    const asked: string[] = [];
    const postgres = Object.create(test.postgres) as Postgres;
    postgres.query = async (...query: Parameters<Postgres['query']>) => {
      asked.push(query[0].name);
      await accept('a');
      return test.postgres.query(...query) as never;
    };
    const { deliveries } = await passTurns(postgres, [first], toBroker);
    expect(deliveries.map(({ notificationId }) => notificationId)).toEqual([second.notificationId]);
    expect(asked).toEqual(['end-turns', 'first-in-line', 'pass-turns', 'end-turns']);
  });

  it('passes a turn on from one day to the next', async () => {
    const tomorrow = () => ({ id: uuidv7({ msecs: Date.now() + 24 * hourMs }) });
    const inTurn = [await accept('a'), await accept('a', tomorrow()), await accept('a'), await accept('a', tomorrow())];
    const [first, ...others] = inTurn;
    const passed: string[] = [];
    for (const [nr, delivery] of [first!, ...others.slice(0, -1)].entries()) {
      await settle(delivered({ ...delivery, generation: nr === 0 ? 1 : 2 }));
      passed.push(...(await pass(delivery)));
    }
    expect(passed).toEqual(others.map(({ notificationId }) => notificationId));
  });

  it('hands out what gets a turn on one day although the turns of another day cannot be passed on', async () => {
    const tomorrow = uuidv7({ msecs: Date.now() + 24 * hourMs });
    const [first, second] = [await accept('a'), await accept('a')];
    const [other, next] = [await accept('b'), await accept('b', { id: tomorrow })];
    for (const each of [first, other]) await settle(delivered(each));
    const postgres = Object.create(test.postgres) as Postgres;
    postgres.query = (async (...asked: Parameters<Postgres['query']>) => {
      const [{ name, text }] = asked;
      if (name === 'pass-turns' && text.includes(partitionOf('delivery', dayOfId(tomorrow))))
        throw new Error('the connection broke');
      return test.postgres.query(...asked);
    }) as Postgres['query'];
    const passedOn: string[] = [];
    const passing = passTurnsOnce(postgres, [first, other], toBroker, ({ deliveries }) => {
      passedOn.push(...deliveries.map(({ notificationId }) => notificationId));
    });
    await expect(passing).rejects.toThrow('the connection broke');
    expect(passedOn).toEqual([second.notificationId]);
    expect(await statesOf(second, next)).toEqual(['queued', 'held for order']);
    await passLeft();
    expect(await stateOf(next)).toBe('waiting');
  });

  // PGlite has a single connection: nothing else can hold a lock.
  if (stack.name === 'real')
    it('passes on a turn that a publication about the same object has locked', async () => {
      const [first, second] = [await accept('a'), await accept('a')];
      await settle(delivered(first));
      const lineUp = statement('line-up-behind', 'UPDATE turn SET lined_up = lined_up + 1 WHERE subscription_id = $id');
      let publishing: Promise<void> | undefined;
      const postgres = Object.create(test.postgres) as Postgres;
      postgres.query = async (...asked: Parameters<Postgres['query']>) => {
        if (asked[0].name.startsWith('first-in-line') && !publishing)
          await new Promise<void>((hasLocked) => {
            publishing = test.postgres.transaction(async (query) => {
              await query(lineUp, { id: subscriptionId });
              hasLocked();
              await eventually(isLockAwaited);
            });
          });
        return test.postgres.query(...asked) as never;
      };
      const passedOn: string[] = [];
      const left = await passTurnsOnce(postgres, [first], toBroker, ({ deliveries }) => {
        passedOn.push(...deliveries.map(({ notificationId }) => notificationId));
      });
      await publishing;
      expect(passedOn).toEqual([second.notificationId]);
      expect(left).toEqual([first]);
    });

  it('says of those that are accepted together which are not to be handed out', async () => {
    const items = [about('a'), about('b'), about('a'), about('a')];
    const { decisions } = await test.acceptAll(items);
    const inLine = new Set([subscriptionId]);
    const accepted = { kind: 'accepted', handedTo: 'worker' };
    expect(decisions).toEqual([accepted, accepted, { ...accepted, inLine }, { ...accepted, inLine }]);
    const [first, , second, third] = items.map(asDelivery);
    await settle(delivered(first!));
    expect(await pass(first!)).toEqual([second!.notificationId]);
    await settle(delivered({ ...second!, generation: 2 }));
    expect(await pass(second!)).toEqual([third!.notificationId]);
  });

  it('goes by when they were accepted, not by their ids, which processes make by clocks of their own', async () => {
    const ids = [9, 7, 8, 1].map((ms) => uuidv7({ msecs: Date.now() + ms }));
    const inTurn: Delivery[] = [];
    for (const id of ids) inTurn.push(await accept('a', { id }));
    const sent = [ids[0]!];
    for (const [nr, delivery] of inTurn.entries()) {
      await settle(delivered({ ...delivery, generation: nr === 0 ? 1 : 2 }));
      sent.push(...(await pass(delivery)));
    }
    expect(sent).toEqual(ids);
  });

  it('keeps the turn of one that failed and waits for its next attempt', async () => {
    const [first, second] = [await accept('a'), await accept('a')];
    await settle(retried(first, hourMs));
    expect(await pass(first)).toEqual([]);
    expect(await passLeft()).toBe(0);
    expect(await statesOf(first, second)).toEqual(['waiting', 'held for order']);
  });

  const ends: [string, (delivery: Delivery) => Promise<unknown>][] = [
    ['failed', (delivery) => settle(ended(delivery, 'failed'))],
    ['expired', (delivery) => settle(ended(delivery, 'expired'))],
    ['cancelled', (delivery) => cancel(test.postgres, delivery)],
    [
      'unknown',
      async (delivery) => {
        await test.claims.claim(delivery, 1000);
        await test.age([delivery], hourMs);
        await (await test.startProcess()).witness();
        await endSending(test.postgres, 0, 10, true);
      },
    ],
  ];
  it.each(ends)('passes on the turn of one that is %s, also where only the dispatcher can know', async (state, end) => {
    const [first, second, third] = [await accept('a'), await accept('a'), await accept('a')];
    await end(first);
    expect(await statesOf(first, second, third)).toEqual([state, 'held for order', 'held for order']);
    expect(await passLeft()).toBe(1);
    expect(await statesOf(second, third)).toEqual(['waiting', 'held for order']);
    expect(await passLeft()).toBe(0);
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([{ notificationId: second.notificationId, isReleased: false }]);
  });

  it('passes over one that was cancelled in line', async () => {
    const [first, second, third] = [await accept('a'), await accept('a'), await accept('a')];
    await cancel(test.postgres, second);
    expect(await passLeft()).toBe(0);
    await settle(delivered(first));
    expect(await pass(first)).toEqual([third.notificationId]);
  });

  it('gives the turn up where all that was in line has been cancelled', async () => {
    const [first, second] = [await accept('a'), await accept('a')];
    await cancel(test.postgres, second);
    await settle(delivered(first));
    expect(await pass(first)).toEqual([]);
    expect(await turns()).toEqual([]);
    expect(await stateOf(await accept('a'))).toBe('queued');
  });

  it('keeps the turn of one that is held for another reason', async () => {
    const held = await accept('a', { heldFor: new Map([[subscriptionId, 'endpoint-parked']]) });
    const behind = await accept('a');
    const queued = await accept('b');
    const behindQueued = await accept('b');
    const holds = new Holds(test.postgres);
    await holds.hold(queued, 'paused');
    expect(await statesOf(held, behind, queued, behindQueued)).toEqual([
      'held for endpoint-parked',
      'held for order',
      'held for paused',
      'held for order',
    ]);
    expect(await passLeft()).toBe(0);
  });

  it('counts how long one that gets the turn is held from when it lined up, and anew where a call failed or an operator retried it', async () => {
    const isSinceLine = async ({ notificationId }: DeliveryKey) => {
      const [row] = await test.sql<{ is_old: boolean }>(
        `SELECT held_since < now() - interval '30 min' AS is_old FROM delivery WHERE notification_id = $1`,
        [notificationId],
      );
      return row!.is_old;
    };
    const handedOut = async ({ notificationId }: DeliveryKey) => {
      const { deliveries } = await handOutDue(test.postgres, 100, null);
      return deliveries.find((each) => each.notificationId === notificationId)!;
    };
    const first = await accept('a');
    const scheduled = await accept('a', { notBefore: Date.now() + hourMs });
    await test.age([scheduled], 2 * hourMs);
    expect((await lineUpDue(test.postgres, 100)).count).toBe(1);
    await test.sql(`UPDATE delivery SET held_since = held_since - interval '1 hour'`);
    await settle(delivered(first));
    expect(await pass(first)).toEqual([scheduled.notificationId]);
    await test.holds.hold({ ...scheduled, generation: 2 }, 'endpoint-parked');
    expect(await isSinceLine(scheduled)).toBe(true);
    await retryNow(test.postgres, scheduled);
    const again = await handedOut(scheduled);
    await test.holds.hold(again, 'endpoint-parked');
    expect(await isSinceLine(scheduled)).toBe(false);
    await test.sql(`UPDATE delivery SET held_since = now() - interval '1 hour', failures = 1`);
    await test.sql(`UPDATE delivery SET state = 'waiting', next_at = now() WHERE state = 'held'`);
    await test.holds.hold(await handedOut(scheduled), 'endpoint-parked');
    expect(await isSinceLine(scheduled)).toBe(false);
  });

  it('has no turn for one that is accepted too old', async () => {
    const old = await accept('a', { expiresAt: Date.now() - hourMs });
    expect(await statesOf(old, await accept('a'))).toEqual(['expired', 'queued']);
  });

  it('is never broken by publishers, workers and dispatchers at the same time that stop anywhere', async () => {
    const [publishers, each, objectNames] = [4, 12, ['a', 'b', 'c']];
    const inFlight = new Map<string, string>();
    const done = new Set<string>();
    const objectOf = new Map<string, string>();
    const placeOf = new Map<string, { publisher: number; nr: number }>();
    const sent: string[] = [];
    const broken: string[] = [];
    const work: HandedOut[] = [];

    const publish = async (publisher: number): Promise<void> => {
      for (let nr = 0; nr < each; nr++) {
        const object = objectNames[Math.floor(Math.random() * objectNames.length)]!;
        const item = about(object);
        objectOf.set(item.id, object);
        placeOf.set(item.id, { publisher, nr });
        const { decisions } = await test.acceptAll([item, ...(nr % 5 === 0 ? [about(`${publisher}`)] : [])]);
        const [decision] = decisions;
        if (decision!.kind === 'accepted' && !decision!.inLine) work.push({ ...asDelivery(item), body: null });
      }
    };

    /** As a worker does it, under its lock and with its seals. It may stop before each step. */
    const send = async (delivery: HandedOut): Promise<void> => {
      const { notificationId } = delivery;
      const stops = () => Math.random() < 0.1;
      if (stops() || (await stillQueued(test.postgres, [delivery])).deliveries.length === 0) return;
      const object = objectOf.get(notificationId)!;
      if (inFlight.get(object) === notificationId || done.has(notificationId)) return;
      if (inFlight.has(object)) broken.push(`${notificationId} beside ${inFlight.get(object)}`);
      inFlight.set(object, notificationId);
      if (!sent.includes(notificationId)) sent.push(notificationId);
      await pause(Math.random() * 3);
      inFlight.delete(object);
      done.add(notificationId);
      await settle(delivered(delivery));
      if (stops()) return;
      const { deliveries } = await passTurns(test.postgres, [delivery], toBroker);
      if (!stops()) work.push(...deliveries);
    };

    let isPublishing = true;
    const isOver = () => !isPublishing && done.size === objectOf.size;
    const worker = async (): Promise<void> => {
      while (!isOver()) {
        const delivery = work.shift();
        await (delivery ? send(delivery) : pause(1));
      }
    };
    const dispatcher = async (): Promise<void> => {
      while (!isOver()) {
        await passLeft();
        // Frees the deliveries that a worker lost on their way, and those that it still has, which it then finds handed
        // out anew.
        await freeQueuedBefore(test.postgres, 0, (await test.now()) - 20, 100);
        await lineUpDue(test.postgres, 100);
        const { deliveries } = await handOutDue(test.postgres, 100, null);
        work.push(...deliveries.filter(({ notificationId }) => objectOf.has(notificationId)));
        await pause(5);
      }
    };
    const publishing = Promise.all(Array.from({ length: publishers }, (_, nr) => publish(nr)));
    await Promise.all([
      publishing.then(() => (isPublishing = false)),
      ...[0, 1, 2, 3].map(worker),
      ...[0, 1].map(dispatcher),
    ]);
    expect(broken).toEqual([]);
    expect(sent).toHaveLength(publishers * each);
    for (const object of objectNames) {
      for (let publisher = 0; publisher < publishers; publisher++) {
        const numbers = sent
          .filter((id) => objectOf.get(id) === object && placeOf.get(id)!.publisher === publisher)
          .map((id) => placeOf.get(id)!.nr);
        expect([object, publisher, numbers]).toEqual([object, publisher, numbers.toSorted((a, b) => a - b)]);
      }
    }
  });
});
