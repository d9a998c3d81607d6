import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isDataError } from '../../src/infra/postgres/postgres-errors.js';
import type { Accepted } from '../../src/ledger/accepted.js';
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

  async function countOf(items: Accepted[]): Promise<{ notifications: number; deliveries: number }> {
    const ids = [items.map(({ id }) => id)];
    const [row] = await test.sql<{ notifications: string; deliveries: string }>(
      `SELECT (SELECT count(*) FROM notification WHERE id = ANY ($1::uuid[])) AS notifications,
         (SELECT count(*) FROM delivery WHERE notification_id = ANY ($1::uuid[])) AS deliveries`,
      ids,
    );
    return { notifications: Number(row!.notifications), deliveries: Number(row!.deliveries) };
  }

  it('writes a notification with its deliveries, leased to the queue, and says when', async () => {
    const before = Date.now();
    const item = newNotification(2, '{"π": "€ 😀",\n "n": 1.0}');
    const answer = await test.ledger.accept(version, [item], { state: 'queued', owner: 'a process' });
    expect(answer.version).toBe(version);
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
        owner: 'a process',
        has_ended: false,
      });
      expect(row!.due_in_ms).toBeGreaterThan(test.config.settings.DELIVERY_LEASE_MS - 10_000);
      expect(row!.due_in_ms).toBeLessThanOrEqual(test.config.settings.DELIVERY_LEASE_MS);
    }
  });

  it('lets deliveries wait where there is no queue', async () => {
    const [delivery] = await test.accept(1, { state: 'waiting', delayMs: 1000 });
    const row = await test.row(delivery!);
    expect(row).toMatchObject({ state: 'waiting', owner: null });
    expect(row!.due_in_ms).toBeLessThanOrEqual(1000);
  });

  it('writes nothing at all when the catalogue is at another version, and says at which', async () => {
    const items = [newNotification(3), newNotification(0)];
    for (const other of [version - 1, version + 1]) {
      expect((await test.ledger.accept(other, items, toBroker)).version).toBe(version);
    }
    expect(await countOf(items)).toEqual({ notifications: 0, deliveries: 0 });
    await test.ledger.accept(version, items, toBroker);
    expect(await countOf(items)).toEqual({ notifications: 2, deliveries: 3 });
  });

  it('keeps a notification that nobody wants', async () => {
    const item = newNotification(0);
    await test.ledger.accept(version, [item], toBroker);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 0 });
  });

  it('gives every notification of a batch its own deliveries', async () => {
    const items = Array.from({ length: 256 }, (_, nr) => newNotification(nr % 4, `{"nr":${nr}}`));
    await test.ledger.accept(version, items, toBroker);
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

  it('takes a fan-out of ten thousand', async () => {
    const item = newNotification(10_000);
    await test.ledger.accept(version, [item], toBroker);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 10_000 });
  });

  it.each<[string, (item: Accepted) => Accepted]>([
    ['a text that cannot be stored', (item) => ({ ...item, body: 'a\0b' })],
    ['an id that is none', (item) => ({ ...item, id: 'nonsense' })],
    [
      'a subscription twice',
      (item) => ({ ...item, subscriptionIds: [item.subscriptionIds[0]!, item.subscriptionIds[0]!] }),
    ],
  ])('writes nothing of a batch that holds %s, and says that the data are to blame', async (_what, spoil) => {
    const [good, bad] = [newNotification(1), spoil(newNotification(1))];
    const failure = await test.ledger.accept(version, [good, bad], toBroker).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await countOf([good])).toEqual({ notifications: 0, deliveries: 0 });
    await test.ledger.accept(version, [good], toBroker);
    expect(await countOf([good])).toEqual({ notifications: 1, deliveries: 1 });
  });

  it('refuses a notification that is there already, whole', async () => {
    const item = newNotification(1);
    await test.ledger.accept(version, [item], toBroker);
    const again = { ...item, subscriptionIds: [randomUUID()] };
    const failure = await test.ledger.accept(version, [again], toBroker).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await countOf([item])).toEqual({ notifications: 1, deliveries: 1 });
  });

  it('makes the day’s partition when nobody has', async () => {
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
      expect(await one.ledger.accept(before, [item], toBroker)).toMatchObject({ version: before + 1 });
      expect(await one.sql('SELECT FROM notification WHERE id = $1', [item.id])).toEqual([]);
    }
    await Promise.all([one.close(), other.close()]);
    await prepared.release();
  });
});
