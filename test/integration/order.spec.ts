import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement, type Values } from '../../src/infra/postgres/statement.js';
import type { Accepted } from '../../src/ledger/acceptance.js';
import { cancel } from '../../src/ledger/cancel.js';
import type { Delivery, DeliveryKey, HandedOut } from '../../src/ledger/delivery.js';
import {
  forgetOrderEnding,
  freeLine,
  noteOrderEndings,
  readOrderEndings,
  withdrawOrderEndings,
} from '../../src/ledger/end-of-order.js';
import { dropHeld, findNewestHeld, forgetDrop, noteDrop, readDrops } from '../../src/ledger/drop-held.js';
import { endDeliveries, noteEndings, readEndings } from '../../src/ledger/end-of-subscription.js';
import { endSending } from '../../src/ledger/end-sending.js';
import { freeQueuedBefore } from '../../src/ledger/free-queued-before.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { cancelNext } from '../../src/ledger/cancel-erased.js';
import { walkDeliveries } from '../../src/ledger/walk-deliveries.js';
import type { HandedOutTogether } from '../../src/ledger/handed-out.js';
import { Holds } from '../../src/ledger/hold.service.js';
import { lineUpDue, type LinedUp } from '../../src/ledger/line-up.js';
import { dayOfId, partitionOf } from '../../src/ledger/partitions.js';
import { findTurnsLeft, passTurns, passTurnsOnce } from '../../src/ledger/pass-turn.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { stillQueued } from '../../src/ledger/still-queued.js';
import { Turns } from '../../src/delivery/turns.service.js';
import type { Enqueuer } from '../../src/queue/enqueuer.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { eventually } from '../support/eventually.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { delivered, ended, newNotification, retried, TestLedger, toBroker } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';
import { newDelivery } from '../support/new-delivery.js';

const hourMs = 3_600_000;

describe.each(stacks)('order by object on the $name stack', (stack) => {
  let test: TestLedger;
  let subscriptionId: string;
  let objects: Record<string, string>;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  afterEach(() => test.clear());
  afterAll(() => test.close());
  const anew = () => {
    subscriptionId = randomUUID();
    objects = {};
  };

  const about = (object: string, parts: Partial<Accepted> = {}): Accepted => ({
    ...newNotification(),
    subscriptionIds: [subscriptionId],
    inOrder: {
      objectKey: (objects[object] ??= randomUUID()),
      subscriptionIds: new Set([subscriptionId]),
    },
    ...parts,
  });

  const asDelivery = ({ id }: Accepted): Delivery => newDelivery({ notificationId: id, subscriptionId });

  async function accept(object: string, parts: Partial<Accepted> = {}): Promise<Delivery> {
    const item = about(object, parts);
    await test.acceptAll([item]);
    return asDelivery(item);
  }

  async function stateOf({ notificationId }: DeliveryKey): Promise<string> {
    const [row] = await test.sql<{ state: string; held_for: string | null }>(
      'SELECT state, held_for FROM delivery WHERE notification_id = $1 AND subscription_id = $2',
      [notificationId, subscriptionId],
    );
    return row!.state === 'held' ? `held for ${row!.held_for}` : row!.state;
  }
  const statesOf = (...deliveries: DeliveryKey[]) => Promise.all(deliveries.map(stateOf));

  const settle = (settlement: Parameters<typeof test.settlements.settle>[0]) => test.settlements.settle(settlement);
  /** As a worker does. @returns the notifications that are handed out by it */
  async function pass(...deliveries: DeliveryKey[]): Promise<string[]> {
    const { deliveries: next } = await passTurns(test.postgres, deliveries, toBroker);
    return next.map(({ notificationId }) => notificationId);
  }
  /** As the rule of the dispatcher does. */
  async function passLeft(): Promise<number> {
    const left = await findTurnsLeft(test.postgres, 0, 0, 1000);
    await passTurns(test.postgres, left, { state: 'waiting', delayMs: 0 });
    return left.length;
  }
  const turns = () => test.sql<{ notification_id: string }>('SELECT notification_id FROM turn');

  it('keeps a later one about the same object in line until the earlier one is delivered, and no other', async () => {
    anew();
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
    anew();
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
    anew();
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
    anew();
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
    anew();
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
    anew();
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
      anew();
      const [first, second] = [await accept('a'), await accept('a')];
      await settle(delivered(first));
      const lineUp = statement('line-up-behind', 'UPDATE turn SET lined_up = lined_up + 1 WHERE subscription_id = $id');
      const isAwaited = async () =>
        (
          await test.sql(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`,
          )
        ).length > 0;
      let publishing: Promise<void> | undefined;
      const postgres = Object.create(test.postgres) as Postgres;
      postgres.query = async (...asked: Parameters<Postgres['query']>) => {
        if (asked[0].name.startsWith('first-in-line') && !publishing)
          await new Promise<void>((hasLocked) => {
            publishing = test.postgres.transaction(async (query) => {
              await query(lineUp, { id: subscriptionId });
              hasLocked();
              await eventually(isAwaited);
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
    anew();
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
    anew();
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
    anew();
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
    anew();
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
    anew();
    const [first, second, third] = [await accept('a'), await accept('a'), await accept('a')];
    await cancel(test.postgres, second);
    expect(await passLeft()).toBe(0);
    await settle(delivered(first));
    expect(await pass(first)).toEqual([third.notificationId]);
  });

  it('gives the turn up where all that was in line has been cancelled', async () => {
    anew();
    const [first, second] = [await accept('a'), await accept('a')];
    await cancel(test.postgres, second);
    await settle(delivered(first));
    expect(await pass(first)).toEqual([]);
    expect(await turns()).toEqual([]);
    expect(await stateOf(await accept('a'))).toBe('queued');
  });

  it('ends with its subscription, in line or not, and leaves nothing behind', async () => {
    anew();
    const [first, second] = [await accept('a'), await accept('a')];
    await test.postgres.dataSource.transaction((manager) => noteEndings(manager, [subscriptionId], 'cancelled', 7));
    const [ending] = await readEndings(test.postgres, 10);
    expect(await endDeliveries(test.postgres, ending!, 10)).toBe(1);
    await settle(ended(first, 'cancelled'));
    expect(await statesOf(first, second)).toEqual(['cancelled', 'cancelled']);
    await passLeft();
    expect(await turns()).toEqual([]);
  });

  it('has a dead one that an operator retries take its turn like a new one', async () => {
    anew();
    const dead = await accept('a');
    await settle(ended(dead, 'failed'));
    await pass(dead);
    const [next, last] = [await accept('a'), await accept('a')];
    await retryNow(test.postgres, dead);
    expect((await handOutDue(test.postgres, 10, null)).deliveries).toEqual([]); // it is not in line yet
    expect((await lineUpDue(test.postgres, 10)).count).toBe(1);
    expect(await statesOf(next, last, dead)).toEqual(['queued', 'held for order', 'held for order']);
    await settle(delivered(next));
    expect(await pass(next)).toEqual([last.notificationId]);
    await settle(delivered({ ...last, generation: 2 }));
    expect(await pass(last)).toEqual([dead.notificationId]);
  });

  it('has a dead one that an operator retries go at once where nothing about its object is on its way', async () => {
    anew();
    const dead = await accept('a');
    await settle(ended(dead, 'failed'));
    await pass(dead);
    await retryNow(test.postgres, dead);
    await lineUpDue(test.postgres, 10);
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([{ notificationId: dead.notificationId, replays: 1 }]);
    expect(await stateOf(await accept('a'))).toBe('held for order');
  });

  it('leaves the turn to a dead one that an operator retries before it was passed on', async () => {
    anew();
    const [first, second] = [await accept('a'), await accept('a')];
    await settle(ended(first, 'failed'));
    await retryNow(test.postgres, first);
    expect(await pass(first)).toEqual([]);
    expect((await lineUpDue(test.postgres, 10)).count).toBe(1); // it finds the turn still its own
    expect((await handOutDue(test.postgres, 10, null)).deliveries).toHaveLength(1);
    expect(await statesOf(first, second)).toEqual(['queued', 'held for order']);
  });

  it.each(['first-in-line', 'pass-turns'])(
    'leaves the turn to a dead one that an operator retries while it is being passed on, right before the statement %s',
    async (statement) => {
      anew();
      const [first, second] = [await accept('a'), await accept('a')];
      await settle(ended(first, 'failed'));
      const retry = async () => {
        await retryNow(test.postgres, first);
        expect((await lineUpDue(test.postgres, 10)).count).toBe(1);
      };
      let isRetried = false;
      const postgres = Object.create(test.postgres) as Postgres;
      postgres.query = async (...asked: Parameters<Postgres['query']>) => {
        if (asked[0].name.startsWith(statement) && !isRetried) {
          isRetried = true;
          await retry();
        }
        return test.postgres.query(...asked) as never;
      };
      expect((await passTurns(postgres, [first], toBroker)).deliveries).toEqual([]);
      expect(isRetried).toBe(true);
      expect(await statesOf(first, second)).toEqual(['waiting', 'held for order']);
    },
  );

  it.each<[string, (again: Delivery) => Promise<unknown>]>([
    ['by the late answer to its earlier call', (again) => settle(delivered({ ...again, generation: 1 }))],
    ['because an operator cancels it', (again) => cancel(test.postgres, again)],
  ])('passes on the turn of one that an operator retried and that ended before it lined up, %s', async (_how, end) => {
    anew();
    const [first, second] = [await accept('a'), await accept('a')];
    await cancel(test.postgres, first);
    await retryNow(test.postgres, first);
    await end(first);
    expect(await passLeft()).toBe(1);
    expect(await statesOf(second)).toEqual(['waiting']);
    await settle(delivered({ ...second, generation: 1 }));
    await passLeft();
    expect(await turns()).toEqual([]);
  });

  it('has one that was cancelled in line go like any other when an operator retries it', async () => {
    anew();
    const [first, second] = [await accept('a'), await accept('a')];
    await cancel(test.postgres, second);
    await settle(delivered(first));
    await pass(first);
    await retryNow(test.postgres, second);
    await lineUpDue(test.postgres, 10);
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([{ notificationId: second.notificationId, isReleased: false }]);
  });

  it('leaves in line one that an operator retries there', async () => {
    anew();
    const [, second] = [await accept('a'), await accept('a')];
    expect(await retryNow(test.postgres, second)).toBe('in-line');
    expect(await stateOf(second)).toBe('held for order');
  });

  it('has a scheduled one line up when it is due: until then it keeps nothing waiting', async () => {
    anew();
    const scheduled = await accept('a', { notBefore: Date.now() + hourMs });
    const now = await accept('a');
    expect(await statesOf(scheduled, now)).toEqual(['waiting', 'queued']);
    expect((await lineUpDue(test.postgres, 10)).count).toBe(0);
    await test.age([scheduled], 2 * hourMs);
    expect((await lineUpDue(test.postgres, 10)).count).toBe(1);
    expect(await stateOf(scheduled)).toBe('held for order');
    await settle(delivered(now));
    expect(await pass(now)).toEqual([scheduled.notificationId]);
  });

  it('has those that are due at the same moment line up in the order of their ids, however few at a time', async () => {
    anew();
    const notBefore = Date.now() + hourMs;
    const ids = [9, 7, 8, 1, 3].map((ms) => uuidv7({ msecs: Date.now() + ms }));
    const due = new Map<string, Delivery>();
    for (const id of ids) due.set(id, await accept('a', { id, notBefore }));
    await test.age([...due.values()], 2 * hourMs);
    const linedUp: number[] = [];
    for (let round = 0; round < 4; round++) linedUp.push((await lineUpDue(test.postgres, 2)).count);
    expect(linedUp).toEqual([2, 2, 1, 0]);
    const sent = (await handOutDue(test.postgres, 10, null)).deliveries.map(({ notificationId }) => notificationId);
    for (let nr = 0; nr < ids.length; nr++) {
      const delivery = due.get(sent[nr]!)!;
      await settle(delivered({ ...delivery, generation: 2 }));
      sent.push(...(await pass(delivery)));
    }
    expect(sent).toEqual(ids.toSorted());
  });

  // PGlite has a single connection: there is no other dispatcher.
  if (stack.name === 'real')
    it('has nothing line up while another dispatcher sees to that, and does not take it for all that was due', async () => {
      anew();
      const [one, other] = [
        await accept('a', { notBefore: Date.now() + hourMs }),
        await accept('b', { notBefore: Date.now() + hourMs }),
      ];
      const publisher = await accept('a');
      await test.age([one, other], 2 * hourMs);
      const lock = statement('lock-turn', 'SELECT FROM turn WHERE notification_id = $id FOR UPDATE');
      const isAwaited = async () =>
        (
          await test.sql(
            `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'transactionid'`,
          )
        ).length > 0;
      let first: Promise<LinedUp> | undefined;
      await test.postgres.transaction(async (query) => {
        await query(lock, { id: publisher.notificationId });
        first = lineUpDue(test.postgres, 1);
        await eventually(isAwaited);
        expect(await lineUpDue(test.postgres, 10, 5)).toEqual({ count: 0, upToMs: 5 });
      });
      expect(await first).toMatchObject({ count: 1 });
      expect(await statesOf(one, other)).toEqual(['held for order', 'waiting']);
      expect(await lineUpDue(test.postgres, 10)).toEqual({ count: 1, upToMs: Infinity });
    });

  describe('with one that is dated a moment ahead, and is not sent before', () => {
    const ahead = () => ({ notBefore: Date.now() + hourMs, keepsPlace: true });
    const handOut = async () =>
      (await handOutDue(test.postgres, 10, null)).deliveries.map(({ notificationId }) => notificationId);

    it('keeps later ones in line until that one is delivered', async () => {
      anew();
      const dated = await accept('a', ahead());
      const later = await accept('a');
      expect(await statesOf(dated, later)).toEqual(['waiting', 'held for order']);
      expect(await handOut()).toEqual([]);
      await test.age([dated], 2 * hourMs);
      expect((await lineUpDue(test.postgres, 10)).count).toBe(0);
      expect(await handOut()).toEqual([dated.notificationId]);
      await settle(delivered({ ...dated, generation: 2 }));
      expect(await pass(dated)).toEqual([later.notificationId]);
    });

    it('has it in line behind an earlier one, and then wait for its date with the turn', async () => {
      anew();
      const [first, dated, later] = [await accept('a'), await accept('a', ahead()), await accept('a')];
      expect(await statesOf(first, dated, later)).toEqual(['queued', 'held for order', 'held for order']);
      await settle(delivered(first));
      expect(await pass(first)).toEqual([]);
      expect(await statesOf(dated, later)).toEqual(['waiting', 'held for order']);
      expect(await test.row(dated)).toMatchObject({ generation: 1, process: null });
      expect(await handOut()).toEqual([]);
      await test.age([dated], 2 * hourMs);
      expect(await handOut()).toEqual([dated.notificationId]);
    });

    it('has it go at once where its date is past when it gets the turn', async () => {
      anew();
      const [first, dated] = [await accept('a'), await accept('a', ahead())];
      await test.age([dated], 2 * hourMs);
      await settle(delivered(first));
      expect(await pass(first)).toEqual([dated.notificationId]);
      expect(await test.row(dated)).toMatchObject({ state: 'queued', generation: 2, due_in_ms: null });
    });

    it('has it wait for its date also where its subscription keeps order no more', async () => {
      anew();
      const [, dated, later] = [await accept('a'), await accept('a', ahead()), await accept('a')];
      await test.postgres.dataSource.transaction((manager) => noteOrderEndings(manager, [subscriptionId], 7));
      const [ending] = await readOrderEndings(test.postgres, 10);
      await freeLine(test.postgres, ending!, 10);
      expect(await statesOf(dated, later)).toEqual(['waiting', 'waiting']);
      expect(await handOut()).toEqual([later.notificationId]);
    });
  });

  it('keeps the turn of one that is held for another reason', async () => {
    anew();
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
    anew();
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
    anew();
    const old = await accept('a', { expiresAt: Date.now() - hourMs });
    expect(await statesOf(old, await accept('a'))).toEqual(['expired', 'queued']);
  });

  it('frees what is in line in batches when its subscription keeps order no more', async () => {
    anew();
    const items = Array.from({ length: 25 }, () => about('a'));
    await test.acceptAll(items);
    const note = (version: number) =>
      test.postgres.dataSource.transaction((manager) => noteOrderEndings(manager, [subscriptionId], version));
    await note(7);
    const [earlier] = await readOrderEndings(test.postgres, 10);
    expect(await freeLine(test.postgres, earlier!, 10)).toBe(10);
    await test.postgres.dataSource.transaction((manager) => withdrawOrderEndings(manager, [subscriptionId]));
    expect(await freeLine(test.postgres, earlier!, 10)).toBe(0);
    await note(8);
    await forgetOrderEnding(test.postgres, earlier!); // not the later one
    const [ending] = await readOrderEndings(test.postgres, 10);
    expect(await freeLine(test.postgres, ending!, 100)).toBe(14);
    await lineUpDue(test.postgres, 100);
    expect((await handOutDue(test.postgres, 100, null)).deliveries).toHaveLength(24);
    await settle(delivered(asDelivery(items[0]!)));
    await passLeft();
    expect(await turns()).toEqual([]);
  });

  it('sends at once what was accepted while its subscription kept order, and is due when it does not any more', async () => {
    anew();
    const scheduled = await accept('a', { notBefore: Date.now() + hourMs });
    const again = await accept('b');
    const [first, later] = [await accept('a'), await accept('b')];
    await settle(ended(again, 'failed'));
    await retryNow(test.postgres, again); // it still has its turn
    await insertSubscription((...asked) => test.sql(...asked), { id: subscriptionId, ordering: 'none' });
    await test.age([scheduled], 2 * hourMs);
    await lineUpDue(test.postgres, 10);
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries.map(({ notificationId }) => notificationId).toSorted()).toEqual(
      [scheduled.notificationId, again.notificationId].toSorted(),
    );
    for (const each of deliveries) await settle(delivered(each));
    expect(await passLeft()).toBe(2);
    expect(await statesOf(first, later)).toEqual(['queued', 'waiting']);
    expect((await turns()).map((turn) => turn.notification_id).toSorted()).toEqual(
      [first.notificationId, later.notificationId].toSorted(),
    );
  });

  describe('whose subscription is paused and drops what it holds', () => {
    /** @returns the note of what is dropped */
    async function drop() {
      const newest = await findNewestHeld(test.postgres, subscriptionId);
      await test.postgres.dataSource.transaction((manager) => noteDrop(manager, subscriptionId, newest!));
      const [noted] = await readDrops(test.postgres, 10);
      return noted!;
    }

    it('gives no turn to one that is dropped, and passes it on to what was accepted later', async () => {
      anew();
      const [first, ...others] = [await accept('a'), await accept('a'), await accept('a')];
      await test.holds.hold(first!, 'paused');
      const noted = await drop();
      const later = await accept('a');
      expect(await dropHeld(test.postgres, noted, 1)).toBe(1);
      expect(await stateOf(first!)).toBe('cancelled');
      expect(await passLeft()).toBe(1);
      expect((await handOutDue(test.postgres, 10, null)).deliveries).toEqual([]);
      expect(await statesOf(...others)).toEqual(['cancelled', 'held for order']);
      expect(await dropHeld(test.postgres, noted, 10)).toBe(1);
      await forgetDrop(test.postgres, noted);
      expect(await readDrops(test.postgres, 10)).toEqual([]);
      await passLeft();
      expect(await statesOf(...others, later)).toEqual(['cancelled', 'cancelled', 'waiting']);
      expect(await turns()).toEqual([{ notification_id: later.notificationId }]);
    });

    it('gives no turn to one that is dropped when a call that was under way has ended', async () => {
      anew();
      const [first, second] = [await accept('a'), await accept('a')];
      await drop();
      const later = await accept('a');
      await settle(delivered(first));
      expect(await pass(first)).toEqual([]);
      expect(await test.row(second)).toMatchObject({
        state: 'cancelled',
        generation: 2,
        has_ended: true,
        due_in_ms: null,
      });
      await passLeft();
      expect(await stateOf(later)).toBe('waiting');
    });

    it('does not drop one that had its turn, or one that lines up, and is held only since then', async () => {
      anew();
      const dead = await accept('a');
      await settle(ended(dead, 'failed'));
      await pass(dead);
      const [first, inHand, behind] = [await accept('b'), await accept('b'), await accept('b')];
      await settle(delivered(first));
      await pass(first);
      const other = await accept('a');
      await test.sql(`UPDATE delivery SET held_since = now() - interval '1 hour' WHERE held_since IS NOT NULL`);
      await drop();
      await test.sql("UPDATE held_drop SET noted_at = noted_at - interval '1 minute'");
      const [noted] = await readDrops(test.postgres, 10);
      await test.holds.hold({ ...inHand, generation: 2 }, 'paused');
      await retryNow(test.postgres, dead);
      await lineUpDue(test.postgres, 10);
      expect(await statesOf(inHand, behind, dead)).toEqual(['held for paused', 'held for order', 'held for order']);
      await settle(delivered(other));
      expect(await pass(other)).toEqual([dead.notificationId]);
      expect(await dropHeld(test.postgres, noted!, 10)).toBe(1);
      expect(await statesOf(inHand, behind, dead)).toEqual(['held for paused', 'cancelled', 'queued']);
    });

    it('drops a long line in batches, with turns being passed on in between, and leaves none of it', async () => {
      anew();
      const items = Array.from({ length: 45 }, (_, nr) => about(`${nr % 3}`));
      await test.acceptAll(items);
      for (const first of items.slice(0, 3)) await test.holds.hold(asDelivery(first), 'paused');
      const noted = await drop();
      const handedOut: HandedOut[] = [];
      while ((await dropHeld(test.postgres, noted, 10)) > 0) {
        await passLeft();
        handedOut.push(...(await handOutDue(test.postgres, 100, null)).deliveries);
      }
      await forgetDrop(test.postgres, noted);
      while ((await passLeft()) > 0);
      handedOut.push(...(await handOutDue(test.postgres, 100, null)).deliveries);
      expect(handedOut).toEqual([]);
      expect(new Set(await statesOf(...items.map(asDelivery)))).toEqual(new Set(['cancelled']));
      expect(await turns()).toEqual([]);
      expect(await test.sql('SELECT FROM in_line')).toEqual([]);
    });
  });

  it('is never broken by publishers, workers and dispatchers at the same time that stop anywhere', async () => {
    anew();
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
