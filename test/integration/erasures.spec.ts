import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { deliveryKeys, keyIdOf } from '../../src/delivery/delivery-keys.js';
import { Idempotency } from '../../src/idempotency/idempotency.service.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { systemClock } from '../../src/infra/clock.js';
import type { Query } from '../../src/infra/postgres/postgres.js';
import type { Values } from '../../src/infra/postgres/statement.js';
import { cancelNext, type CancelledByErasure } from '../../src/ledger/cancel-erased.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import { attachPartition, dayOfId, lowestIdAt, partitionsBetween } from '../../src/ledger/partitions.js';
import { replaceScheduled } from '../../src/ledger/replace-scheduled.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import { rowsTogether, walkDeliveries } from '../../src/ledger/walk-deliveries.js';
import { ErasureWork } from '../../src/retention/erasure-work.service.js';
import { stepThrough } from '../../src/retention/erasure-walk.js';
import { Erasures } from '../../src/retention/erasures.service.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { newNotification, type TestLedger } from '../support/ledger.js';
import { onTerms, requestKey } from '../support/once-keys.js';
import { large, mebibyte, running, waysOfSendingAgain, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('erasures on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let retention: TestRetention;
  let test: TestLedger;
  let keys: ReturnType<typeof deliveryKeys>;
  let erasures: Erasures;
  let work: ErasureWork;
  let idempotency: Idempotency;

  beforeAll(async () => {
    prepared = await stack.prepare();
    retention = await TestRetention.open(prepared.settings);
    ({ test } = retention);
    const alive = await test.startProcess(); // the lock of one that is not could be taken over
    const heartbeat = { processId: alive.id } as typeof test.heartbeat;
    idempotency = new Idempotency(new PostgresIdempotencyStore(test.postgres), heartbeat, systemClock);
    keys = deliveryKeys(idempotency, test.config.settings);
    erasures = new Erasures(test.postgres);
    work = new ErasureWork(test.postgres, idempotency, new InProcessAttemptStates(), test.config);
  });
  beforeEach(() => retention.clear());
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  describe('an erasure that is asked for', () => {
    const mainObject = 'https://zaken.example.org/zaken/"1"';
    const about = (hoofdObject: string) => JSON.stringify({ kanaal: 'cases', hoofdObject, kenmerken: {} });
    const settleAll = () => test.sql('UPDATE erased_delivery SET gone_at = now() WHERE gone_at IS NOT NULL');
    const workOff = () => work.workOff(running);
    const workOn = (postgres: typeof test.postgres) =>
      new ErasureWork(postgres, idempotency, new InProcessAttemptStates(), test.config);

    it('of a notification cancels what is not sent yet, and is done when no worker can have it any more', async () => {
      const key = await retention.add(Date.now(), 'queued');
      const other = await retention.add(Date.now(), 'queued');
      await test.sql(`UPDATE notification SET request_key = 'order-4711'`);
      const { id, state } = await erasures.ofNotification(key.notificationId);
      expect(state).toBe('erasing');
      await workOff();
      expect(await test.row(key)).toMatchObject({
        state: 'cancelled',
        generation: 2,
        last_error: 'the body of its notification was erased',
      });
      expect(await retention.everythingOf(key)).not.toMatch(/secret|order-4711/);
      expect(await retention.everythingOf(other)).toMatch(/secret.*order-4711/);
      // A worker that has its message finds its key sealed.
      expect(await keys.acquire(keyIdOf({ ...key, replays: 0 }))).toMatchObject({ kind: 'sealed' });
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', erased: 1, cancelled: 1, unsettled: 1 });
      // An answer may wait for its turn to be written, and then for its statement.
      expect(await test.sql(`SELECT FROM erased_delivery WHERE gone_at > now() + interval '45 s'`)).toHaveLength(1);
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done', unsettled: 0 });
    });

    it('reports each that it cancels, and each that had ended just before, once', async () => {
      const [id, ended] = [uuidv7(), randomUUID()];
      const addSome = (subscriptionIds: string[], state: DeliveryState, columns: Record<string, string>) =>
        insertDeliveries(retention.sql, { notifications: [id], subscriptionIds, state, columns });
      const waiting = [randomUUID(), randomUUID(), randomUUID()];
      await insertNotifications(retention.sql, [id]);
      await addSome(waiting, 'waiting', { next_at: 'now()' });
      await addSome([ended], 'cancelled', { ended_at: 'now()' });
      const reported: CancelledByErasure[] = [];
      const cancel = (values: Values) =>
        test.postgres.transaction(async (query) => {
          const { reached, found } = await cancelNext(query, dayOfId(id), values);
          reported.push(...found);
          return reached;
        });
      expect(await walkDeliveries([id], cancel, { stopping: running, limit: 2 })).toBe(true);
      const [cancelled, before] = [true, false].map((yes) => reported.filter(({ isCancelled }) => isCancelled === yes));
      expect(cancelled!.map(({ subscriptionId }) => subscriptionId).toSorted()).toEqual(waiting.toSorted());
      expect(before!.map(({ subscriptionId }) => subscriptionId)).toEqual([ended]);
    });

    it('of a notification with more deliveries than one statement takes cancels and erases all of them', async () => {
      const id = uuidv7();
      await retention.addMany([id], rowsTogether + 1, 'waiting');
      const erasure = await erasures.ofNotification(id);
      await retention.withFewRowsAStatement(Date.now(), workOff);
      expect(await erasures.get(erasure.id)).toMatchObject({ erased: 1, cancelled: rowsTogether + 1 });
      expect(await test.sql(`SELECT DISTINCT state FROM delivery`)).toEqual([{ state: 'cancelled' }]);
      expect(await test.sql(`SELECT FROM attempt WHERE error LIKE '%secret%'`)).toEqual([]);
    });

    it.each(waysOfSendingAgain)('cancels what is sent again while it is worked off: %s', async (_, send) => {
      const key = await retention.add(Date.now(), 'failed');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOn(retention.withMeanwhile(() => send(retention, key))).workOff(running);
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 1, erased: 1, cancelled: 1 });
      expect(await retention.everythingOf(key)).not.toContain('secret');
      expect(await test.sql(`SELECT FROM delivery WHERE state NOT IN ('failed', 'cancelled')`)).toEqual([]);
    });

    it('about a main object goes on behind what was sent again meanwhile, and misses nothing', async () => {
      const body = about(mainObject);
      const [key, other] = [
        await retention.add(Date.now(), 'failed', { body }),
        await retention.add(Date.now(), 'failed', { body }),
      ];
      const { id } = await erasures.aboutMainObject(mainObject);
      await workOff();
      await erasures.confirm(id, 2);
      await workOn(retention.withMeanwhile(() => retryNow(test.postgres, key))).workOff(running);
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 2, erased: 2, cancelled: 1 });
      expect(await retention.bodyOf(key)).toBeNull();
      expect(await retention.bodyOf(other)).toBeNull();
    });

    it.each([
      { about: mainObject, state: 'cancelled', erased: 1 },
      { about: 'https://zaken.example.org/zaken/2', state: 'waiting', erased: 0 },
    ])(
      'about a main object leaves $state what its publisher replaces meanwhile with a text about $about',
      async ({ about: hoofdObject, state, erased }) => {
        const request = requestKey(randomUUID(), { operation: 'put' });
        const [notBefore, channel] = [Date.now() + 60_000, 'cases'];
        const item = onTerms({ ...newNotification(1), body: about(mainObject), request, notBefore });
        await test.acceptAll([item]);
        const { id } = await erasures.aboutMainObject(mainObject);
        await workOff();
        await erasures.confirm(id, 1);
        const subscriptionId = randomUUID();
        const replacement = {
          ...{
            request,
            content: null,
            channel,
            body: about(hoofdObject),
            traceParent: null,
            notBefore,
            expiresAt: null,
          },
          ...{ subscriptionIds: [subscriptionId], inOrder: null },
        };
        const version = await test.catalogueVersion();
        const replace = async () =>
          expect((await replaceScheduled(test.postgres, version, replacement)).kind).toBe('replaced');
        await workOn(retention.onceFound(replace)).workOff(running);
        await settleAll();
        await workOff();
        expect(await erasures.get(id)).toMatchObject({ state: 'done', erased, cancelled: erased });
        const key = { notificationId: item.id, subscriptionId };
        expect(await test.row(key)).toMatchObject({ state });
        expect(await retention.bodyOf(key)).toBe(erased === 1 ? null : about(hoofdObject));
      },
    );

    it('seals each key under which a delivery may be sent that was sent again after it was cancelled', async () => {
      const key = await retention.add(Date.now(), 'queued');
      await erasures.ofNotification(key.notificationId);
      await workOn(retention.withMeanwhile(() => retryNow(test.postgres, key))).workOff(running);
      expect(await test.row(key)).toMatchObject({ state: 'cancelled', replays: 1 });
      for (const replays of [0, 1])
        expect(await keys.acquire(keyIdOf({ ...key, replays }))).toMatchObject({ kind: 'sealed' });
    });

    it('is left as it is by a dispatcher that stood still until another one had worked it off', async () => {
      const key = await retention.add(Date.now(), 'waiting');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOn(retention.onceLooked(workOff)).workOff(running);
      expect(await erasures.get(id)).toMatchObject({ state: 'done', erased: 1, cancelled: 1, unsettled: 0 });
    });

    it('is worked off although an earlier one fails', async () => {
      const [first, second] = [await retention.add(Date.now(), 'failed'), await retention.add(Date.now(), 'failed')];
      for (const { notificationId } of [first, second]) await erasures.ofNotification(notificationId);
      await test.sql(
        `ALTER TABLE notification ADD CONSTRAINT full_disk CHECK (id <> '${first.notificationId}' OR body IS NOT NULL) NOT VALID`,
      );
      try {
        await expect(workOff()).rejects.toThrow('full_disk');
      } finally {
        await test.sql('ALTER TABLE notification DROP CONSTRAINT full_disk');
      }
      expect(await retention.bodyOf(first)).not.toBeNull();
      expect(await retention.bodyOf(second)).toBeNull();
    });

    it('is begun, and ended, although a hundred older ones wait for what workers have', async () => {
      await test.sql(
        `WITH older AS (
           INSERT INTO erasure (id, state, reached, notification_id)
           SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'ending', $1, $1 FROM generate_series(1, 100) AS n
           RETURNING id
         )
         INSERT INTO erased_delivery (erasure_id, notification_id, subscription_id, replays, was_queued, gone_at)
         SELECT id, id, id, 0, true, now() + interval '1 hour' FROM older`,
        [lowestIdAt(0)],
      );
      const key = await retention.add(Date.now(), 'queued');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', erased: 1, cancelled: 1 });
      await test.sql('UPDATE erased_delivery SET gone_at = now() WHERE erasure_id = $1', [id]);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
    });

    it('waits for the call that is open, and erases what its answer leaves', async () => {
      const key = await retention.add(Date.now(), 'queued');
      const call = await keys.acquire(keyIdOf({ ...key, replays: 0 }));
      const { id } = await erasures.ofNotification(key.notificationId);
      for (let round = 0; round < 3; round++) {
        await workOff();
        await settleAll();
      }
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', unsettled: 1 });
      await test.sql(
        `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
         VALUES ($1, $2, 1, 2, now(), 1, 502, 'HTTP 502: secret')`,
        [key.notificationId, key.subscriptionId],
      );
      if (call.kind === 'acquired') await call.lock.release();
      await workOff();
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
      expect(await retention.everythingOf(key)).not.toContain('secret');
    });

    it('of an at-most-once delivery waits until its call has ended', async () => {
      const key = await retention.add(Date.now(), 'sending');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'ending', unsettled: 1 });
      await settleAll();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
    });

    it('about a main object counts first, and erases what was confirmed, over all days', async () => {
      const old = await retention.makeDay(5);
      const found = await Promise.all(
        [old, Date.now()].flatMap((at) => [
          retention.add(at, 'delivered', { body: about(mainObject) }),
          retention.add(at, 'waiting', { body: about(mainObject) }),
        ]),
      );
      const others = await Promise.all([
        retention.add(old, 'delivered', { body: about(`${mainObject}/2`) }),
        // Of the same name, but a characteristic.
        retention.add(old, 'delivered', {
          body: JSON.stringify({ hoofdObject: 'https://other/', kenmerken: { hoofdObject: mainObject } }),
        }),
      ]);
      // Ids may come among those of an older block, whose digest denies what it was not made of.
      await test.sql(
        `INSERT INTO digest (from_id, to_id, bits) SELECT min(id::text)::uuid, max(id::text)::uuid, decode(repeat('00', 8000), 'hex') FROM notification`,
      );
      const { id, state } = await erasures.aboutMainObject(mainObject);
      expect(state).toBe('counting');
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'counted', found: 4, erased: 0 });
      await expect(erasures.confirm(id, 5)).rejects.toMatchObject({ code: 'confirm-mismatch' });
      await workOff();
      expect(await retention.bodyOf(found[0]!)).not.toBeNull();
      await erasures.confirm(id, 4);
      await expect(erasures.confirm(id, 4)).rejects.toMatchObject({ code: 'erasure-not-counted' });
      await workOff();
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done', found: 4, erased: 4, cancelled: 2 });
      for (const key of found) expect(await retention.bodyOf(key)).toBeNull();
      for (const key of others) expect(await retention.bodyOf(key)).not.toBeNull();
      const kept = await test.sql('SELECT e, (SELECT json_agg(a) FROM audit_entry a) AS audit FROM erasure e');
      expect(JSON.stringify(kept)).toContain('erasure.done');
      expect(JSON.stringify(kept)).not.toContain('zaken.example.org');
      await test.sql('DELETE FROM digest');
    });

    it('about a main object reads few large bodies at a time, and passes over none', async () => {
      const old = await retention.makeDay(5);
      const text = 'x'.repeat(large);
      const added = [];
      for (let nr = 0; nr < 20; nr++) {
        const body = JSON.stringify({ hoofdObject: nr % 10 === 9 ? mainObject : 'https://other/', text });
        const id = uuidv7({ msecs: old + nr });
        await insertNotifications(retention.sql, [id], { body });
        added.push(id);
      }
      const query: Query = (...asked) => test.postgres.query(...asked);
      const days = [dayOfId(added[0]!)];
      const [found, looked]: [string[], number[]] = [[], []];
      for (let [reached, isOver] = [lowestIdAt(0), false]; !isOver;) {
        const step = await stepThrough(query, mainObject, reached, { days, limit: 100 });
        looked.push(added.filter((id) => id > reached && id <= step.reached).length);
        found.push(...step.ids);
        [reached, isOver] = [step.reached, step.isOver];
      }
      expect(found).toEqual([added[9], added[19]]);
      // Those that make 4 MiB, the last one included.
      expect(Math.max(...looked)).toBe(Math.ceil((4 * mebibyte) / large));
    });

    it.each([1, 2, 3])(
      'of a day that is away is done there too, also with %i of its partitions detached',
      async (count) => {
        const at = await retention.makeDay(8);
        const named = await retention.add(at, 'waiting');
        const found = await retention.add(at, 'waiting', { body: about(mainObject) });
        const away = partitionsBetween(at, at).slice(-count);
        for (const { table, name } of away.toReversed())
          await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
        const one = await erasures.ofNotification(named.notificationId);
        const all = await erasures.aboutMainObject(mainObject);
        await workOff();
        await erasures.confirm(all.id, 1);
        await workOff();
        await settleAll();
        await workOff();
        for (const { id } of [one, all])
          expect(await erasures.get(id)).toMatchObject({ state: 'done', erased: 1, cancelled: 1 });
        for (const partition of away) await test.sql(attachPartition(partition));
        for (const key of [named, found]) {
          expect(await retention.bodyOf(key)).toBeNull();
          expect(await retention.everythingOf(key)).not.toMatch(/secret|zaken/);
          expect(await test.row(key)).toMatchObject({ state: 'cancelled' });
        }
      },
    );

    it('is abandoned when nobody confirms it for a day', async () => {
      const { id } = await erasures.aboutMainObject(mainObject);
      await workOff();
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'counted' });
      await test.sql(`UPDATE erasure SET counted_at = now() - interval '25 hours'`);
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'abandoned' });
      expect(await test.sql('SELECT main_object FROM erasure')).toEqual([{ main_object: null }]);
      await test.sql(`UPDATE erasure SET requested_at = now() - interval '731 days'`);
      await work.sweep();
      expect(await test.sql('SELECT FROM erasure')).toEqual([]);
    });

    it('waits for its confirmation for a day since it was counted, however late that was', async () => {
      const { id } = await erasures.aboutMainObject(mainObject);
      await test.sql(`UPDATE erasure SET requested_at = now() - interval '25 hours'`);
      await workOff();
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'counted' });
    });

    it('is forgotten with all that was left of it', async () => {
      const key = await retention.add(Date.now(), 'waiting');
      const { id } = await erasures.ofNotification(key.notificationId);
      await workOff();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
      // By a process of an older version.
      await test.sql(
        `INSERT INTO erased_delivery (erasure_id, notification_id, subscription_id, replays, was_queued)
         VALUES ($1, $2, $3, 0, true)`,
        [id, key.notificationId, key.subscriptionId],
      );
      await work.sweep();
      expect(await erasures.get(id)).toMatchObject({ state: 'done' });
      await test.sql(`UPDATE erasure SET requested_at = now() - interval '731 days'`);
      await work.sweep();
      expect(await test.sql('SELECT FROM erasure')).toEqual([]);
      expect(await test.sql('SELECT FROM erased_delivery')).toEqual([]);
    });
  });
});
