import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { recoveryRules } from '../../src/dispatching/recovery-rules.js';
import { SendingEnded } from '../../src/dispatching/sending-ended.js';
import { systemClock } from '../../src/infra/clock.js';
import { ConflictProblem, NotFoundProblem } from '../../src/infra/http/problem.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { dropHeld, findNewestHeld, forgetDrop, noteDrop, readDrops } from '../../src/ledger/drop-held.js';
import { freeHeldTooLong } from '../../src/ledger/free-held.js';
import { claimLooks, endLooks, type Look } from '../../src/ledger/held-subscriptions.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { Holds } from '../../src/ledger/hold.service.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { dayOfId } from '../../src/ledger/partitions.js';
import { readHeld } from '../../src/ledger/read-held.js';
import { release } from '../../src/ledger/release.js';
import { sendAgain } from '../../src/ledger/send-again.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { OperationalEvent, OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import type { Subscription } from '../../src/subscriptions/subscription.js';
import type { SubscriptionInput } from '../../src/subscriptions/subscription-changes.js';
import { SubscriptionEntity } from '../../src/subscriptions/subscription.entity.js';
import type { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { newDelivery } from '../support/new-delivery.js';
import { plainCipher } from '../support/secrets.js';
import { subscriptionsService } from '../support/subscriptions-service.js';

Logger.overrideLogger(false);
const running = new AbortController().signal;
/** For what another transaction of this database has locked. */
const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

describe.each(stacks)('a paused subscription on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let catalogue: Catalogue;
  let subscriptions: SubscriptionsService;
  let events: OperationalEvent[];
  const reporting = { report: (event: OperationalEvent) => void events.push(event) } as OperationalEvents;
  let id: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), [SubscriptionEntity]);
    await postgres.migrate();
    await new PartitionKeeper(postgres).makeAhead();
    await makeMonthsAhead(postgres);
    catalogue = new Catalogue(postgres);
    const directory = new SubscriptionDirectory(catalogue, postgres, plainCipher);
    subscriptions = subscriptionsService(catalogue, directory, postgres, reporting, plainCipher);
  });
  beforeEach(async () => {
    events = [];
    id = await subscribe();
  });
  afterEach(() =>
    sql('DELETE FROM delivery; DELETE FROM held_subscription; DELETE FROM held_drop; DELETE FROM subscription_ending'),
  );
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

  async function subscribe(): Promise<string> {
    const input = { callbackUrl: 'http://receiver/', auth: '', channels: [], deliveryGuarantee: null };
    return (await subscriptions.create('owner', input)).subscription.id;
  }

  /** Deliveries that are held for it, of notifications that are accepted now. */
  const hold = (count: number, { of = id, reason = 'paused' } = {}): Promise<string[]> =>
    insertDeliveries(sql, {
      notifications: count,
      subscriptionIds: [of],
      state: 'held',
      columns: { held_for: `'${reason}'` },
    });

  /** State → how many. */
  async function statesOf(subscriptionId = id): Promise<Record<string, number>> {
    const rows = await sql<{ state: string; count: number }>(
      'SELECT state, count(*)::int AS count FROM delivery WHERE subscription_id = $1 GROUP BY state',
      [subscriptionId],
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  function apply(name: string): Promise<number> {
    const sending = new SendingEnded(postgres, reporting, { now: Date.now } as LedgerClock, systemClock);
    const rules = recoveryRules(
      postgres,
      undefined as never,
      reporting,
      sending,
      { now: Date.now } as LedgerClock,
      systemClock,
    );
    return rules.find((rule) => rule.name === name)!.run(running);
  }

  const isLookDue = async () => (await claimLooks(postgres, 10)).some(({ subscriptionId }) => subscriptionId === id);
  const nextLookLater = (look: Look) =>
    endLooks(postgres, [{ ...look, released: 0, rateCredit: null, nextLookInMs: 60_000 }]);

  it.each<[string, () => Promise<Subscription>]>([
    ['paused', () => subscriptions.pause(id)],
    ['set', () => subscriptions.set(id, { ratePerSecond: 5 })],
    ['replaced', () => subscriptions.update(id, { auth: 'new' })],
  ])('is answered as it was %s, although another process deletes it right after that', async (_, change) => {
    const refresh = vi.spyOn(catalogue, 'refresh').mockImplementationOnce(async () => {
      await sql('UPDATE catalogue SET version = version + 1');
      await sql(
        'UPDATE subscription SET deleted_at = now(), version = catalogue.version FROM catalogue WHERE id = $1',
        [id],
      );
      await catalogue.refresh();
    });
    expect(await change()).toMatchObject({ id });
    refresh.mockRestore();
    await expect(subscriptions.get(id)).rejects.toThrow(NotFoundProblem);
  });

  it.each<Partial<SubscriptionInput>>([
    { auth: 'new' },
    { callbackUrl: 'HTTP://Other#1' }, // the same address
  ])(
    'has what it holds begin to be too old for its retry policy when its address is changed, not by %j',
    async (change) => {
      await hold(2, { reason: 'rate' });
      await sql('UPDATE delivery SET held_since = now()');
      const tooLong = { subscriptionId: id, heldBefore: Date.now() + 60_000, reason: 'held for long' };
      const freedAfter = async (changes: Partial<SubscriptionInput>) => {
        await subscriptions.update(id, changes);
        await sql("UPDATE held_subscription SET resumed_at = resumed_at + interval '1 hour'");
        return (await freeHeldTooLong(postgres, tooLong, undefined, 10)).freed;
      };
      expect(await freedAfter({ callbackUrl: 'http://other/' })).toBe(0);
      await sql('UPDATE held_subscription SET resumed_at = NULL');
      expect(await freedAfter(change)).toBe(2);
    },
  );

  it('is looked at when its credentials are changed: with another TLS identity it leads to another endpoint', async () => {
    await hold(1);
    await subscriptions.set(id, { ratePerSecond: 5 });
    await sql("UPDATE held_subscription SET look_at = now() + interval '5 minutes'");
    await subscriptions.setCredentials(id, { headers: { 'X-Key': 'secret' } });
    expect(await isLookDue()).toBe(true);
  });

  it('is paused and resumed once, however often it is asked, and each is reported', async () => {
    const { pausedAt } = await subscriptions.pause(id);
    expect(pausedAt).toBeInstanceOf(Date);
    const version = catalogue.version;
    expect((await subscriptions.pause(id)).pausedAt).toEqual(pausedAt);
    expect(catalogue.version).toBe(version);
    expect((await subscriptions.resume(id)).pausedAt).toBeNull();
    expect((await subscriptions.resume(id)).pausedAt).toBeNull();
    expect(catalogue.version).toBe(version + 1);
    await Promise.all(Array.from({ length: 5 }, () => subscriptions.pause(id)));
    expect(events).toEqual(
      ['paused', 'resumed', 'paused'].map((what) => ({ event: `subscription.${what}`, subscriptionId: id })),
    );
  });

  it('is looked at by a dispatcher at once when it is paused, resumed, or gets another rate', async () => {
    for (const change of [
      () => subscriptions.pause(id),
      () => subscriptions.resume(id),
      () => subscriptions.set(id, { ratePerSecond: 5 }),
      () => subscriptions.set(id, { ratePerSecond: null }),
    ]) {
      await change();
      const [look] = await claimLooks(postgres, 10);
      expect(look).toMatchObject({ subscriptionId: id });
      await nextLookLater(look!);
      expect(await isLookDue()).toBe(false);
    }
    await subscriptions.set(id, { maxConcurrency: 5 });
    expect(await isLookDue()).toBe(false);
  });

  it('is looked at once more when it is resumed while a dispatcher looks at it', async () => {
    await subscriptions.pause(id);
    const [look] = await claimLooks(postgres, 10);
    await subscriptions.resume(id);
    await nextLookLater(look!);
    expect(await isLookDue()).toBe(true);
  });

  it('drops what it holds at that moment, in batches, and nothing else', async () => {
    await subscriptions.pause(id);
    const other = await subscribe();
    await hold(3, { of: other });
    await hold(1500);
    await hold(700, { reason: 'order' });
    await sql(`UPDATE delivery SET state = 'waiting', next_at = now() + interval '1 h', held_for = NULL
      WHERE (notification_id, subscription_id) IN
        (SELECT notification_id, subscription_id FROM delivery WHERE subscription_id = '${id}' LIMIT 10)`);
    await subscriptions.dropHeld(id);
    const later = await hold(5);
    expect(await readHeld(postgres, id, 10_000)).toMatchObject({ count: 2195, isDropping: true });
    expect(await apply('held-dropped')).toBe(2190);
    expect(await statesOf()).toEqual({ cancelled: 2190, waiting: 10, held: 5 });
    expect(await statesOf(other)).toEqual({ held: 3 });
    const left = await sql<{ notification_id: string }>(
      `SELECT notification_id FROM delivery WHERE state = 'held' AND subscription_id = $1`,
      [id],
    );
    expect(left.map((row) => row.notification_id).toSorted()).toEqual(later.toSorted());
    expect(await readHeld(postgres, id, 10_000)).toMatchObject({ count: 5, isDropping: false });
    expect(await apply('held-dropped')).toBe(0);
  });

  it('drops more when it is asked again before it has finished', async () => {
    await subscriptions.pause(id);
    await hold(2);
    await subscriptions.dropHeld(id);
    const [first] = await readDrops(postgres, 10);
    await hold(2);
    await subscriptions.dropHeld(id);
    expect(await dropHeld(postgres, first!, 10)).toBe(2);
    await forgetDrop(postgres, first!); // not for the later request
    expect(await apply('held-dropped')).toBe(2);
    expect(await readDrops(postgres, 10)).toEqual([]);
  });

  /** Has it happened a minute ago, however coarse the clock is. */
  const backdateDrops = () => sql("UPDATE held_drop SET noted_at = noted_at - interval '1 minute'");
  const oneOfThem = (notificationId: string) => ({ notificationId, subscriptionId: id });

  it('does not drop what was accepted before it was asked to, and is held only since then', async () => {
    await subscriptions.pause(id);
    const inHand = await insertDeliveries(sql, { notifications: 2, subscriptionIds: [id], state: 'queued' });
    const retried = await insertDeliveries(sql, {
      notifications: 2,
      subscriptionIds: [id],
      state: 'waiting',
      columns: { next_at: 'now()', failures: '1', held_since: `now() - interval '1 hour'` },
    });
    const dead = await insertDeliveries(sql, {
      notifications: 2,
      subscriptionIds: [id],
      state: 'failed',
      columns: { ended_at: 'now()' },
    });
    await insertNotifications(sql, [...retried, ...dead]);
    await hold(3);
    await sql(`UPDATE delivery SET held_since = now() - interval '1 hour' WHERE state = 'held'`);
    await subscriptions.dropHeld(id);
    await backdateDrops();
    const [drop] = await readDrops(postgres, 10);

    const { deliveries } = await handOutDue(postgres, 10, null);
    expect(deliveries).toHaveLength(2);
    const holds = new Holds(postgres);
    await Promise.all(deliveries.map((each) => holds.hold(each, 'paused')));
    for (const notificationId of inHand) await holds.hold(newDelivery(oneOfThem(notificationId)), 'paused');
    for (const notificationId of dead) {
      const again = { ...oneOfThem(notificationId), isNew: false, heldFor: 'paused', objectKey: null } as const;
      const of = { states: ['failed'], replay: randomUUID() } as const;
      await postgres.transaction((query) => sendAgain(query, dayOfId(notificationId), [again], of));
    }
    expect(await statesOf()).toEqual({ held: 9 });
    expect(await dropHeld(postgres, drop!, 10)).toBe(3);
    await forgetDrop(postgres, drop!);
    expect(await statesOf()).toEqual({ held: 6, cancelled: 3 });
    expect((await subscriptions.resume(id)).pausedAt).toBeNull();
  });

  it('drops what has come to be held when it is asked again before it has finished', async () => {
    await subscriptions.pause(id);
    const [early] = await insertDeliveries(sql, { notifications: 1, subscriptionIds: [id], state: 'queued' });
    await hold(1);
    await subscriptions.dropHeld(id);
    await backdateDrops();
    const [first] = await readDrops(postgres, 10);
    await new Holds(postgres).hold(newDelivery(oneOfThem(early!)), 'paused');
    expect(await dropHeld(postgres, first!, 10)).toBe(1);
    await subscriptions.dropHeld(id);
    await forgetDrop(postgres, first!); // not for the later request
    expect(await apply('held-dropped')).toBe(1);
    expect(await readDrops(postgres, 10)).toEqual([]);
  });

  it('drops what was held before the clock of Postgres was set back, and ends', async () => {
    await subscriptions.pause(id);
    await hold(2);
    await sql("UPDATE delivery SET held_since = now() + interval '1 hour'");
    await subscriptions.dropHeld(id);
    expect(await apply('held-dropped')).toBe(2);
    expect(await readDrops(postgres, 10)).toEqual([]);
  });

  it('is not resumed before what it drops is dropped', async () => {
    await subscriptions.pause(id);
    await hold(1);
    await subscriptions.dropHeld(id);
    await expect(subscriptions.resume(id)).rejects.toMatchObject({ code: 'subscription-dropping', status: 409 });
    expect((await subscriptions.get(id)).pausedAt).not.toBeNull();
    await apply('held-dropped');
    expect((await subscriptions.resume(id)).pausedAt).toBeNull();
  });

  it.each(['resumed', 'dropped'] as const)(
    'is not resumed while it drops, where both are asked for at once and it is %s first',
    async (first) => {
      if (postgres.isEmbedded) return; // one connection: one thing at a time
      await subscriptions.pause(id);
      await hold(1);
      const other = first === 'resumed' ? 'dropHeld' : 'resume';
      const answer = await postgres.dataSource.transaction(async (manager) => {
        if (first === 'resumed') await manager.query('UPDATE subscription SET paused_at = NULL WHERE id = $1', [id]);
        else {
          await manager.query('SELECT FROM subscription WHERE id = $1 FOR SHARE', [id]);
          await noteDrop(manager, id, (await findNewestHeld(postgres, id))!);
        }
        const asked = subscriptions[other](id).then(
          () => 'done',
          (error: unknown) => (error as ConflictProblem).code,
        );
        await eventually(async () => (await sql(waiting)).length > 0);
        return { asked };
      });
      expect(await answer.asked).toBe(first === 'resumed' ? 'subscription-not-paused' : 'subscription-dropping');
    },
  );

  it('drops nothing where nothing is held, and nothing unless it is paused', async () => {
    await hold(1);
    await expect(subscriptions.dropHeld(id)).rejects.toThrow(ConflictProblem);
    await sql('DELETE FROM delivery');
    await subscriptions.pause(id);
    await subscriptions.dropHeld(id);
    expect(await readDrops(postgres, 10)).toEqual([]);
    expect((await subscriptions.resume(id)).pausedAt).toBeNull();
  });

  it('does not cancel what an operator has sent again after it was dropped', async () => {
    await subscriptions.pause(id);
    await hold(1);
    await subscriptions.dropHeld(id);
    const [drop] = await readDrops(postgres, 10);
    await apply('held-dropped');
    await sql(`UPDATE delivery SET state = 'held', held_for = 'paused'`);
    expect(await dropHeld(postgres, drop!, 10)).toBe(0);
  });

  it('keeps nobody waiting while it drops, and drops later what was locked', async () => {
    if (postgres.isEmbedded) return; // one connection: nobody can wait for another
    await subscriptions.pause(id);
    const [locked] = await hold(10);
    await subscriptions.dropHeld(id);
    await postgres.dataSource.transaction(async (manager) => {
      await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [locked]);
      expect(await apply('held-dropped')).toBe(9);
    });
    expect(await apply('held-dropped')).toBe(1);
    expect(await readDrops(postgres, 10)).toEqual([]);
  });

  it('loses what it holds when it is disabled or deleted', async () => {
    for (const [end, state] of [
      [() => subscriptions.disable(id), 'failed'],
      [() => subscriptions.remove(id), 'cancelled'],
    ] as const) {
      id = await subscribe();
      await subscriptions.pause(id);
      await hold(2);
      await end();
      await apply('subscription-ended');
      expect(await statesOf()).toEqual({ [state]: 2 });
    }
    for (const act of ['pause', 'resume', 'dropHeld', 'enable'] as const)
      await expect(subscriptions[act](id)).rejects.toThrow(NotFoundProblem);
  });

  it('has a worker end what was held after it had been disabled or deleted', async () => {
    for (const end of [() => subscriptions.disable(id), () => subscriptions.remove(id)]) {
      id = await subscribe();
      await subscriptions.pause(id);
      await end();
      await apply('subscription-ended');
      const [late] = await hold(1); // by a worker that did not know yet
      const { deliveries } = await release(postgres, [{ subscriptionId: id, window: 4, limit: 4 }], null);
      expect(deliveries.map(({ notificationId }) => notificationId)).toEqual([late]);
    }
  });

  it('stays paused when it is disabled and enabled, by an operator or by its subscriber', async () => {
    await subscriptions.pause(id);
    await subscriptions.set(id, { ratePerSecond: 2, ordering: 'per-object', timeoutSeconds: 3, maxConcurrency: 4 });
    for (const enable of [() => subscriptions.enable(id), () => subscriptions.update(id, { auth: 'new' })]) {
      events = [];
      await subscriptions.disable(id);
      await subscriptions.disable(id);
      await hold(1);
      expect(await enable()).toMatchObject({
        disabledAt: null,
        pausedAt: expect.any(Date),
        ratePerSecond: 2,
        ordering: 'per-object',
        timeoutSeconds: 3,
        maxConcurrency: 4,
      });
      await enable();
      expect(events.map(({ event }) => event)).toEqual(['subscription.disabled', 'subscription.enabled']);
    }
    // Deliveries that had not failed by then are still held.
    await apply('subscription-ended');
    expect(await statesOf()).toEqual({ held: 2 });
  });

  it('says how much is held for it, why, and since when', async () => {
    expect(await readHeld(postgres, id, 10)).toEqual({ count: 0, byReason: {}, oldestAt: null, isDropping: false });
    const [oldest] = await hold(1, { reason: 'endpoint-busy' });
    await hold(2);
    expect(await readHeld(postgres, id, 10)).toEqual({
      count: 3,
      byReason: { 'endpoint-busy': 1, paused: 2 },
      oldestAt: new Date(Number.parseInt(oldest!.replaceAll('-', '').slice(0, 12), 16)),
      isDropping: false,
    });
    expect(await readHeld(postgres, id, 2)).toMatchObject({ count: 2, byReason: { 'endpoint-busy': 1, paused: 1 } });
    expect((await readHeld(postgres, randomUUID(), 2)).count).toBe(0);
  });
});
