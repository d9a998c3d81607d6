import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { DeliveryReader } from '../../src/deliveries/delivery-reader.service.js';
import { LedgerSearch } from '../../src/deliveries/search.service.js';
import type { DeliveryKey } from '../../src/ledger/delivery.js';
import { findActions } from '../../src/notifications/find-actions.js';
import { NotificationReader, type WholeNotification } from '../../src/notifications/notification-reader.service.js';
import type { StoryEvent } from '../../src/notifications/story.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { TestLedger } from '../support/ledger.js';

/** It knows of no subscription, and so of no endpoint. */
const noDirectory = { find: () => undefined } as unknown as SubscriptionDirectory;

describe('one notification', () => {
  let place: TestDatabase;
  let test: TestLedger;
  let reader: NotificationReader;

  beforeAll(async () => {
    place = await createDatabase();
    test = await TestLedger.open({ DATABASE_URL: place.url });
    await makeMonthsAhead(test.postgres);
    const search = new LedgerSearch(test.postgres);
    reader = new NotificationReader(test.postgres, search, new DeliveryReader(test.postgres, search), noDirectory);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  afterAll(async () => {
    await test.close();
    await place.drop();
  });

  describe('whose receivers answered much', () => {
    /** Of one answer; Postgres keeps such a text compressed: what counts is how long it is when it is read. */
    const length = 100_000;
    const measuring = 'measure-attempts';

    /** For so many subscriptions, each of which answered once, or not at all. */
    async function answered(count: number, answers: number): Promise<string> {
      const { notificationId } = (await test.accept(count))[0]!;
      await test.sql(
        `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error, details)
         SELECT notification_id, subscription_id, 1, n, now(), 1, 500, 'HTTP 500',
           json_build_object('address', '192.0.2.1:443', 'headers', NULL, 'body', repeat('x', $2))
         FROM delivery, generate_series(1, $3::int) AS n WHERE notification_id = $1`,
        [notificationId, length, answers],
      );
      return notificationId;
    }
    async function pagesOf(id: string, limit: number): Promise<WholeNotification[]> {
      const pages: WholeNotification[] = [];
      let after: DeliveryKey | undefined;
      do {
        pages.push((await reader.find(id, after, limit))!);
        after = pages.at(-1)!.next;
      } while (after);
      return pages;
    }
    const keysOf = (pages: WholeNotification[]) =>
      pages.flatMap(({ deliveries }) => deliveries.map(({ delivery }) => delivery.subscriptionId));

    it('ends behind the delivery with which it is full, and goes on with the next one', async () => {
      const pages = await pagesOf(await answered(100, 1), 500);
      // The first 42 answers are the first ones that are more than 4 MiB.
      expect(pages.map(({ deliveries }) => deliveries.length)).toEqual([42, 42, 16]);
      expect(new Set(keysOf(pages)).size).toBe(100);
      expect(keysOf(pages)).toEqual(keysOf(pages).toSorted().toReversed());
    });

    it('has one delivery at least, with the latest twenty of its attempts', async () => {
      const pages = await pagesOf(await answered(3, 50), 500);
      expect(pages.map(({ deliveries }) => deliveries.map(({ attempts }) => attempts.length))).toEqual([[20, 20, 20]]);
      const large = await answered(2, 50);
      await test.sql(
        `UPDATE attempt SET details = json_build_object('body', repeat('x', 4 * 1024 * 1024)) WHERE notification_id = $1 AND number = 50`,
        [large],
      );
      expect((await pagesOf(large, 500)).map(({ deliveries }) => deliveries.length)).toEqual([1, 1]);
    });

    it('measures no more than fifty deliveries at a time, and none behind those with which it is full', async () => {
      const asked = vi.spyOn(test.postgres, 'queryAside');
      await reader.find(await answered(120, 1), undefined, 500);
      const measured = asked.mock.calls.filter(([{ name }]) => name === measuring);
      expect(measured.map(([, values]) => (values!.ids as string[]).length)).toEqual([50]);
    });

    it('comes also where its day is dropped before it is measured', async () => {
      const id = await answered(3, 1);
      const query = test.postgres.queryAside.bind(test.postgres);
      vi.spyOn(test.postgres, 'queryAside').mockImplementation((statement, values) =>
        statement.name === measuring
          ? Promise.reject(Object.assign(new Error('no such table'), { code: '42P01' }))
          : query(statement, values),
      );
      expect((await pagesOf(id, 2)).map(({ deliveries }) => deliveries.length)).toEqual([2, 1]);
    });

    it('is as long as it may be where they answered nothing', async () => {
      const pages = await pagesOf(await answered(101, 0), 50);
      expect(pages.map(({ deliveries }) => deliveries.length)).toEqual([50, 50, 1]);
    });
  });

  describe('of whose subscription much is in the audit log', () => {
    let key: DeliveryKey;
    const nameOf = ({ notificationId, subscriptionId }: DeliveryKey) => `delivery/${notificationId}/${subscriptionId}`;

    beforeEach(async () => {
      key = (await test.accept())[0]!;
    });

    /** So many, the last of them so many seconds after the notification was accepted, each a millisecond apart. */
    const note = (action: string, subject: string, seconds: number, { count = 1, before = '{}' } = {}) =>
      test.sql(
        `INSERT INTO audit_entry (at, client, action, subject, before, changed_secrets)
         SELECT accepted_at + $3 * interval '1 second' - n * interval '1 millisecond', 'operator', $1, $2, $4::json, '{}'
         FROM notification, generate_series(0, $5::int - 1) AS n WHERE id = $6`,
        [action, subject, seconds, before, count, key.notificationId],
      );
    const ends = (state: string, seconds: number, replays = 0) =>
      test.sql(
        `UPDATE delivery SET state = $2, replays = $4,
           ended_at = (SELECT accepted_at FROM notification WHERE id = $1) + $3 * interval '1 second'
         WHERE notification_id = $1`,
        [key.notificationId, state, seconds, replays],
      );
    const told = async (name: StoryEvent['event']) =>
      (await reader.find(key.notificationId, undefined, 10))!.story.filter(({ event }) => event === name);

    it('tells who had it sent again, and what was done to the subscription before', async () => {
      const subscription = `subscription/${key.subscriptionId}`;
      await note('subscription.paused', subscription, 1);
      await note('subscription.tested', subscription, 10, { count: 900 });
      await note('delivery.retried', nameOf(key), 11, { before: '{"state": "failed"}' });
      await ends('delivered', 12, 1);
      // Nothing that is noted after its end is part of its story, however much it is.
      await note('subscription.tested', subscription, 100, { count: 2001 });
      expect(await told('retried')).toEqual([
        expect.objectContaining({ at: expect.any(Date), by: 'operator', reason: null }),
      ]);
      expect(await told('subscription-paused')).toHaveLength(1);
    });

    it('tells who had it sent again where more was noted before than is looked at', async () => {
      await note('subscription.tested', `subscription/${key.subscriptionId}`, 10, { count: 2001 });
      await note('delivery.retried', nameOf(key), 11, { before: '{"state": "failed"}' });
      await ends('delivered', 12, 1);
      expect(await told('retried')).toEqual([expect.objectContaining({ by: 'operator', reason: null })]);
      await ends('delivered', 12, 2);
      // All entries of the delivery were looked at, and only the latest of its subscription.
      expect(await told('retried')).toContainEqual(
        expect.objectContaining({ by: null, count: 1, reason: expect.stringContaining('not in the audit log') }),
      );
      await note('delivery.tried', nameOf(key), 10, { count: 1000 });
      expect(await told('retried')).toContainEqual(
        expect.objectContaining({ by: null, count: 1, reason: expect.stringContaining('only the latest') }),
      );
    });

    it('tells what was done to the subscription in the millisecond of its end', async () => {
      const subscription = `subscription/${key.subscriptionId}`;
      await ends('delivered', 1);
      await test.sql(
        `WITH ended AS (
           UPDATE delivery SET ended_at = date_trunc('milliseconds', ended_at) + interval '900 microseconds'
           WHERE notification_id = $1 RETURNING ended_at
         )
         INSERT INTO audit_entry (at, client, action, subject, before, changed_secrets)
         SELECT ended_at - interval '100 microseconds', 'operator', 'subscription.paused', $2, '{}', '{}' FROM ended`,
        [key.notificationId, subscription],
      );
      expect(await told('subscription-paused')).toHaveLength(1);
    });

    it('is told the latest of each subject, and which of them have more', async () => {
      const names = [nameOf(key), `subscription/${key.subscriptionId}`] as const;
      const [{ accepted_at: since }] = (await test.sql<{ accepted_at: Date }>(
        'SELECT accepted_at FROM notification WHERE id = $1',
        [key.notificationId],
      )) as [{ accepted_at: Date }];
      await note('delivery.retried', names[0], 20, { count: 2 });
      await note('subscription.paused', names[1], 5);
      await note('subscription.resumed', names[1], 6);
      await note('subscription.changed', names[1], 7, { count: 2 });
      const of = async (limits: { ofEach: number; together: number }) => {
        const subjects = names.map((name) => ({ name, until: null }));
        const { of: found, cut } = await findActions(test.postgres, subjects, since, limits);
        return [...names.map((name) => found.get(name)?.length ?? 0), names.map((name) => cut.has(name))];
      };
      expect(await of({ ofEach: 5, together: 10 })).toEqual([2, 2, [false, false]]);
      expect(await of({ ofEach: 3, together: 10 })).toEqual([2, 1, [false, true]]);
      expect(await of({ ofEach: 2, together: 10 })).toEqual([2, 0, [true, true]]);
      expect(await of({ ofEach: 5, together: 3 })).toEqual([2, 1, [true, true]]);
    });
  });
});
