import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isDataError } from '../../src/infra/postgres/postgres-errors.js';
import { accept } from '../../src/ledger/accept.js';
import type { Accepted, Destination } from '../../src/ledger/acceptance.js';
import { DeadlinePassed } from '../../src/ledger/may-write.js';
import { newNotification, TestLedger, toBroker } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('accepting on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let version: number;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
    version = await test.catalogueVersion();
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  /** For two subscriptions, of which one is paused. */
  function partlyHeld(): Accepted {
    const item = newNotification(2);
    return { ...item, heldFor: new Map([[item.subscriptionIds[0]!, 'paused']]) };
  }

  async function countOf(items: Accepted[]): Promise<{ notifications: number; deliveries: number }> {
    const ids = [items.map(({ id }) => id)];
    const [row] = await test.sql<{ notifications: string; deliveries: string }>(
      `SELECT (SELECT count(*) FROM notification WHERE id = ANY ($1::uuid[])) AS notifications,
         (SELECT count(*) FROM delivery WHERE notification_id = ANY ($1::uuid[])) AS deliveries`,
      ids,
    );
    return { notifications: Number(row!.notifications), deliveries: Number(row!.deliveries) };
  }

  it('writes a notification with its deliveries, handed to the queue, and says when', async () => {
    const before = Date.now();
    const item = newNotification(2, '{"π": "€ 😀",\n "n": 1.0}');
    const answer = await test.acceptAll([item], { state: 'queued', process: 'a process' });
    expect(answer).toMatchObject({ version, decisions: [{ kind: 'accepted', handedTo: 'worker' }] });
    expect(Math.abs(answer.queuedAt - before)).toBeLessThan(10_000);
    const [stored] = await test.sql('SELECT channel, publisher, body FROM notification WHERE id = $1', [item.id]);
    expect(stored).toEqual({ channel: 'cases', publisher: 'tester', body: item.body });
    for (const subscriptionId of item.subscriptionIds) {
      const row = await test.row({ notificationId: item.id, subscriptionId });
      expect(row).toMatchObject({
        state: 'queued',
        generation: 1,
        attempts: 0,
        failures: 0,
        process: 'a process',
        has_ended: false,
        due_in_ms: null,
      });
    }
  });

  it.each([{}, { expiresAt: Date.now() + 3_600_000 }])(
    'writes deliveries for its own worker as in the hand of its process, under a lease and in no queue: %j',
    async (terms) => {
      const item = { ...newNotification(1), ...terms };
      const later = { ...newNotification(1), notBefore: Date.now() + 60_000 };
      const destination = { state: 'in-hand', process: 'a process', leaseMs: 15_000 } as const;
      const decisions = [];
      for (const each of [item, later]) decisions.push(...(await test.acceptAll([each], destination)).decisions);
      expect(decisions).toMatchObject([{ handedTo: 'worker' }, { handedTo: 'dispatcher' }]);
      const rows = await test.sql(
        `SELECT state, process, queued_at, extract(epoch FROM next_at - accepted_at)::float8 AS lease_s, next_at = not_before AS is_scheduled
         FROM delivery JOIN notification n ON n.id = notification_id
         WHERE n.id = ANY ($1::uuid[]) ORDER BY next_at`,
        [[item.id, later.id]],
      );
      expect(rows).toEqual([
        { state: 'queued', process: 'a process', queued_at: null, lease_s: 15, is_scheduled: null },
        { state: 'waiting', process: null, queued_at: null, lease_s: expect.any(Number), is_scheduled: true },
      ]);
    },
  );

  it('lets deliveries wait where there is no queue', async () => {
    const [delivery] = await test.accept(1, { state: 'waiting', delayMs: 1000 });
    const row = await test.row(delivery!);
    expect(row).toMatchObject({ state: 'waiting', process: null });
    expect(row!.due_in_ms).toBeLessThanOrEqual(1000);
  });

  it('writes no row when the catalogue is at another version, and returns that version', async () => {
    const items = [newNotification(3), newNotification(0)];
    for (const batch of [items, [...items, partlyHeld()]]) {
      for (const other of [version - 1, version + 1]) {
        expect(await test.acceptAll(batch, toBroker, other)).toMatchObject({ version, decisions: [] });
      }
      expect(await countOf(batch)).toEqual({ notifications: 0, deliveries: 0 });
    }
    expect(await test.sql('SELECT FROM held_subscription')).toEqual([]);
    await test.acceptAll(items);
    expect(await countOf(items)).toEqual({ notifications: 2, deliveries: 3 });
  });

  it('writes no row after the deadline, also where deliveries are held', async () => {
    const past = { at: Date.now() - 60_000, hasPassed: () => true };
    const items = [newNotification(1), partlyHeld()];
    for (const batch of [items.slice(0, 1), items])
      await expect(accept(test.postgres, version, batch, toBroker, past)).rejects.toThrow(DeadlinePassed);
    expect(await countOf(items)).toEqual({ notifications: 0, deliveries: 0 });
    expect(await test.sql('SELECT FROM held_subscription')).toEqual([]);
  });

  it.each<Destination>([
    toBroker,
    { state: 'in-hand', process: 'a process', leaseMs: 15_000 },
    { state: 'waiting', delayMs: 1000 },
  ])('writes the same rows of what is held in part, whatever else is in the batch: %j', async (destination) => {
    const rows = [];
    for (const beside of [[], [{ ...newNotification(0), expiresAt: Date.now() + 3_600_000 }]]) {
      const item = partlyHeld();
      const { decisions } = await test.acceptAll([item, ...beside], destination);
      const deliveries = await test.sql(
        `SELECT to_jsonb(d) - '{notification_id, subscription_id, held_since, queued_at, next_at}'::text[] AS row,
           held_since IS NULL AS is_not_held, queued_at IS NULL AS is_out, next_at - accepted_at AS due
         FROM delivery d JOIN notification n ON n.id = notification_id WHERE n.id = $1 ORDER BY state`,
        [item.id],
      );
      const of = item.heldFor.keys().next().value;
      const looks = await test.sql('SELECT is_backlog FROM held_subscription WHERE subscription_id = $1', [of]);
      rows.push({ deliveries, looks, handedTo: decisions[0] });
      await test.sql('TRUNCATE held_subscription');
    }
    expect(rows[0]!.deliveries).toHaveLength(2);
    expect(rows[0]!.looks).toHaveLength(1);
    expect(rows[1]).toEqual(rows[0]);
  });

  it('keeps a notification without a matching subscription', async () => {
    const item = newNotification(0);
    await test.acceptAll([item]);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 0 });
  });

  it('gives every notification of a batch its own deliveries', async () => {
    const items = Array.from({ length: 256 }, (_, nr) => newNotification(nr % 4, `{"nr":${nr}}`));
    await test.acceptAll(items);
    const rows = await test.sql<{ id: string; ids: string[]; body: string }>(
      `SELECT n.id, n.body, ARRAY(SELECT subscription_id::text FROM delivery WHERE notification_id = n.id) AS ids
       FROM notification n WHERE id = ANY ($1::uuid[])`,
      [items.map(({ id }) => id)],
    );
    const found = new Map(rows.map((row) => [row.id, row]));
    for (const { id, body, subscriptionIds } of items) {
      expect(found.get(id)!.body).toBe(body);
      expect(found.get(id)!.ids.toSorted()).toEqual(subscriptionIds.toSorted());
    }
  });

  it('accepts a fan-out of ten thousand', async () => {
    const item = newNotification(10_000);
    await test.acceptAll([item]);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 10_000 });
  });

  it.each<[string, (item: Accepted) => Accepted]>([
    ['a text that cannot be stored', (item) => ({ ...item, body: 'a\0b' })],
    ['an id that is none', (item) => ({ ...item, id: 'nonsense' })],
    [
      'a subscription twice',
      (item) => ({ ...item, subscriptionIds: [item.subscriptionIds[0]!, item.subscriptionIds[0]!] }),
    ],
  ])('writes no row of a batch that contains %s, and reports a data error', async (_what, spoil) => {
    const [good, bad] = [newNotification(1), spoil(newNotification(1))];
    const failure = await test.acceptAll([good, bad]).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await countOf([good])).toEqual({ notifications: 0, deliveries: 0 });
    await test.acceptAll([good]);
    expect(await countOf([good])).toEqual({ notifications: 1, deliveries: 1 });
  });

  it('refuses a notification that is there already, whole', async () => {
    const item = newNotification(1);
    await test.acceptAll([item]);
    const again = { ...item, subscriptionIds: [randomUUID()] };
    const failure = await test.acceptAll([again]).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 1 });
  });

  it('makes the day’s partition when it is missing', async () => {
    const rows = await test.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_inherits JOIN pg_class ON oid = inhrelid
       WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)`,
    );
    expect(rows.length).toBeGreaterThan(0);
    await test.sql(`DROP TABLE ${rows.map(({ name }) => name).join(', ')}`);
    const [delivery] = await test.accept();
    expect(await test.state(delivery!)).toBe('queued');
  });
});

describe('accepting in two processes', () => {
  it('misses no change of the catalogue that was committed before', async () => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const [one, other] = [await TestLedger.open(prepared.settings), await TestLedger.open(prepared.settings)];
    for (let round = 0; round < 50; round++) {
      const before = await one.catalogueVersion();
      await other.sql('UPDATE catalogue SET version = version + 1');
      const item = newNotification(1);
      expect(await one.acceptAll([item], toBroker, before)).toMatchObject({ version: before + 1 });
      expect(await one.sql('SELECT FROM notification WHERE id = $1', [item.id])).toEqual([]);
    }
    await Promise.all([one.close(), other.close()]);
    await prepared.release();
  });
});
