import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { v7 as uuidv7 } from 'uuid';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import { cancel } from '../../src/ledger/cancel.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import { freeLine, noteOrderEndings, readOrderEndings } from '../../src/ledger/end-of-order.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { lineUpDue, type LinedUp } from '../../src/ledger/line-up.js';
import { passTurns } from '../../src/ledger/pass-turn.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { eventually } from '../support/eventually.js';
import { delivered, ended, type TestLedger, toBroker } from '../support/ledger.js';
import { hourMs, OrderScene } from '../support/order-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('order by object on the $name stack', (stack) => {
  const scene = new OrderScene(stack);
  const { accept, stateOf, statesOf, settle, pass, passLeft, turns, isLockAwaited } = scene;
  let test: TestLedger;
  let subscriptionId: string;

  beforeAll(async () => {
    test = await scene.open();
  });
  beforeEach(async () => {
    subscriptionId = await scene.clear();
  });
  afterAll(() => scene.close());

  it('has a dead one that an operator retries take its turn like a new one', async () => {
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
    const [, second] = [await accept('a'), await accept('a')];
    expect(await retryNow(test.postgres, second)).toBe('in-line');
    expect(await stateOf(second)).toBe('held for order');
  });

  it('has a scheduled one line up when it is due: until then it keeps nothing waiting', async () => {
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
      const [one, other] = [
        await accept('a', { notBefore: Date.now() + hourMs }),
        await accept('b', { notBefore: Date.now() + hourMs }),
      ];
      const publisher = await accept('a');
      await test.age([one, other], 2 * hourMs);
      const lock = statement('lock-turn', 'SELECT FROM turn WHERE notification_id = $id FOR UPDATE');
      let first: Promise<LinedUp> | undefined;
      await test.postgres.transaction(async (query) => {
        await query(lock, { id: publisher.notificationId });
        first = lineUpDue(test.postgres, 1);
        await eventually(isLockAwaited);
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
      const [first, dated] = [await accept('a'), await accept('a', ahead())];
      await test.age([dated], 2 * hourMs);
      await settle(delivered(first));
      expect(await pass(first)).toEqual([dated.notificationId]);
      expect(await test.row(dated)).toMatchObject({ state: 'queued', generation: 2, due_in_ms: null });
    });

    it('has it wait for its date also where its subscription keeps order no more', async () => {
      const [, dated, later] = [await accept('a'), await accept('a', ahead()), await accept('a')];
      await test.postgres.dataSource.transaction((manager) => noteOrderEndings(manager, [subscriptionId], 7));
      const [ending] = await readOrderEndings(test.postgres, 10);
      await freeLine(test.postgres, ending!, 10);
      expect(await statesOf(dated, later)).toEqual(['waiting', 'waiting']);
      expect(await handOut()).toEqual([later.notificationId]);
    });
  });
});
