import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HandedOut } from '../../src/ledger/delivery.js';
import { dropHeld, findNewestHeld, forgetDrop, noteDrop, readDrops } from '../../src/ledger/drop-held.js';
import {
  forgetOrderEnding,
  freeLine,
  noteOrderEndings,
  readOrderEndings,
  withdrawOrderEndings,
} from '../../src/ledger/end-of-order.js';
import { endDeliveries, noteEndings, readEndings } from '../../src/ledger/end-of-subscription.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { lineUpDue } from '../../src/ledger/line-up.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { delivered, ended, type TestLedger } from '../support/ledger.js';
import { hourMs, OrderScene } from '../support/order-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('order by object on the $name stack', (stack) => {
  const scene = new OrderScene(stack);
  const { about, asDelivery, accept, stateOf, statesOf, settle, pass, passLeft, turns } = scene;
  let test: TestLedger;
  let subscriptionId: string;

  beforeAll(async () => {
    test = await scene.open();
  });
  beforeEach(async () => {
    subscriptionId = await scene.clear();
  });
  afterAll(() => scene.close());

  it('ends with its subscription, in line or not, and leaves nothing behind', async () => {
    const [first, second] = [await accept('a'), await accept('a')];
    await test.postgres.dataSource.transaction((manager) => noteEndings(manager, [subscriptionId], 'cancelled', 7));
    const [ending] = await readEndings(test.postgres, 10);
    expect(await endDeliveries(test.postgres, ending!, 10)).toBe(1);
    await settle(ended(first, 'cancelled'));
    expect(await statesOf(first, second)).toEqual(['cancelled', 'cancelled']);
    await passLeft();
    expect(await turns()).toEqual([]);
  });

  it('frees what is in line in batches when its subscription keeps order no more', async () => {
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

    it('drops what was in line also when it keeps order no more, and frees what came later', async () => {
      await accept('a');
      const dropped = await accept('a');
      const noted = await drop();
      const later = await accept('a');
      await test.postgres.dataSource.transaction((manager) => noteOrderEndings(manager, [subscriptionId], 7));
      const [ending] = await readOrderEndings(test.postgres, 10);
      expect(await freeLine(test.postgres, ending!, 10)).toBe(0);
      await forgetOrderEnding(test.postgres, ending!);
      expect(await dropHeld(test.postgres, noted, 10)).toBe(1);
      await forgetDrop(test.postgres, noted);
      const [still] = await readOrderEndings(test.postgres, 10);
      expect(await freeLine(test.postgres, still!, 10)).toBe(1);
      expect(await statesOf(dropped, later)).toEqual(['cancelled', 'waiting']);
    });

    it('drops a long line in batches, with turns being passed on in between, and leaves none of it', async () => {
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
});
