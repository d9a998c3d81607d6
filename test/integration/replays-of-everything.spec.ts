import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { Postgres, Query } from '../../src/infra/postgres/postgres.js';
import type { Statement } from '../../src/infra/postgres/statement.js';
import { noteEndings } from '../../src/ledger/end-of-subscription.js';
import { lowestId, lowestIdAt, timeOfId } from '../../src/ledger/partitions.js';
import { replaceScheduled, type Replaced, type Replacement } from '../../src/ledger/replace-scheduled.js';
import type { MeantCounter } from '../../src/replays/count-meant.service.js';
import { meantBy } from '../../src/replays/replay.js';
import type { Replays } from '../../src/replays/replays.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { eventually } from '../support/eventually.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import type { TestLedger } from '../support/ledger.js';
import { requestKey } from '../support/once-keys.js';
import { hourMs, ReplayScene, running } from '../support/replay-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('a replay of everything for a subscription, on the $name stack', (stack) => {
  const scene = new ReplayScene(stack);
  const { newRunner, sql, newSubscription, remove, notifications, dead, create, run, now, rowsOf } = scene;
  let test: TestLedger;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;
  let counter: MeantCounter;
  let replays: Replays;

  beforeAll(async () => {
    ({ test, catalogue, directory, counter, replays } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

  const body = (object: string, kind: string) => JSON.stringify({ hoofdObject: object, kenmerken: { zaakType: kind } });

  /** As `test.postgres`, but after each statement of its transactions, before the next, comes `look`. */
  function watching<R>(look: (statement: Statement, rows: R[]) => void | Promise<void>): Postgres {
    const transaction = <T>(work: (query: Query) => Promise<T>) =>
      test.postgres.transaction((query) =>
        work(async (statement, values) => {
          const rows = await query(statement, values);
          await look(statement, rows as R[]);
          return rows as never[];
        }),
      );
    return Object.create(test.postgres, { transaction: { value: transaction } }) as Postgres;
  }

  it('sends what its filters fit and it never got, and what it got and missed, in order', async () => {
    const wanted = await notifications(1200, { channel: 'cases', body: body('https://cases.example/1', 'a') });
    const others = [
      ...(await notifications(2, { channel: 'cases', body: body('https://cases.example/1', 'b') })),
      ...(await notifications(2, { channel: 'people', body: body('https://cases.example/1', 'a') })),
    ];
    const id = await newSubscription({
      ordering: 'per-object',
      channels: [{ channel: 'cases', filters: { zaak_type: 'a' } }],
    });
    await dead(wanted.slice(0, 1), id, {}, 'delivered');
    await dead(wanted.slice(1, 2), id);
    await dead(wanted.slice(2, 3), id, { held_for: "'paused'" }, 'waiting');
    const dry = await replays.dryRun('replay', { everythingFor: id }, true);
    expect(dry).toMatchObject({ count: 1198, notifications: 1198 });
    const acceptedTo = new Date((await test.now()) - hourMs / 120).toISOString();
    const replay = await create({ everythingFor: id, acceptedTo });
    await expect(create({ everythingFor: id })).rejects.toMatchObject({ code: 'replay-under-way' });
    expect(await run()).toBe(1198);
    expect(await now(replay)).toMatchObject({ state: 'done', counted: 1198, done: 1198 });
    const rows = await sql<{ id: string; state: string; object: string | null }>(
      `SELECT notification_id AS id, state, object_key AS object FROM delivery WHERE subscription_id = $1 ORDER BY turn_nr NULLS FIRST, 1`,
      [id],
    );
    expect(rows.map((row) => row.id)).toEqual(wanted);
    expect(rows.some((row) => others.includes(row.id))).toBe(false);
    expect(rows.slice(0, 5).map((row) => row.state)).toEqual(['delivered', 'waiting', 'waiting', 'waiting', 'held']);
    expect(new Set(rows.slice(3).map((row) => row.object)).size).toBe(1);
    // Nothing is left.
    await create({ everythingFor: id });
    expect(await run()).toBe(0);
  });

  // PGlite has a single connection: nothing else happens in the middle of a step.
  if (stack.name === 'real')
    it('sends nothing by the old content of what is replaced meanwhile', async () => {
      const id = await newSubscription({
        ordering: 'per-object',
        channels: [{ channel: 'cases', filters: { zaak_type: 'a' } }],
      });
      const [notification] = await notifications(1, { agoMs: hourMs, body: body('https://cases.example/1', 'a') });
      await sql(`UPDATE notification SET not_before = now() + interval '1 h'`);
      await sql(
        `INSERT INTO once_key (application, operation, key, result_id, expires_at) VALUES ('tester', 'put', 'k', $1, now() + interval '1 h')`,
        [notification],
      );
      const replacement: Replacement = {
        request: requestKey('k', { operation: 'put' }),
        content: null,
        channel: 'cases',
        body: body('https://cases.example/2', 'b'),
        traceParent: null,
        notBefore: null,
        expiresAt: null,
        subscriptionIds: [],
        inOrder: null,
      };
      const version = await test.catalogueVersion();
      let replacing: Promise<Replaced> | undefined;
      let isReplaced = false;
      const isAwaited = async () =>
        isReplaced ||
        (await sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
          .length > 0;
      const postgres = watching(async (_, rows: { notification_id?: string }[]) => {
        if (replacing || !rows.some((row) => row.notification_id === notification)) return;
        replacing = replaceScheduled(test.postgres, version, replacement);
        replacing.then(
          () => (isReplaced = true),
          () => undefined,
        );
        await eventually(isAwaited, 'the replacement, or its waiting');
      });
      const replay = await create({ everythingFor: id });
      await newRunner(postgres).stepAll(running);
      expect((await now(replay)).done).toBe(1);
      expect(await replacing).toEqual({ kind: 'replaced', notificationId: notification });
      expect(await rowsOf(id)).toEqual([]);
      expect(await sql('SELECT FROM turn')).toEqual([]);
    });

  // As above: another process deletes it.
  if (stack.name === 'real')
    it('passes over what it finds when its subscription is deleted in the middle of a step', async () => {
      const id = await newSubscription({ channels: [{ channel: 'cases', filters: { zaak_type: 'a' } }] });
      await notifications(1, { channel: 'cases', body: body('https://cases.example/1', 'a') });
      const acceptedTo = new Date((await test.now()) - hourMs / 120).toISOString();
      const replay = await create({ everythingFor: id, acceptedTo });
      const postgres = watching(async ({ name }) => {
        if (name !== 'oldest-transaction') return;
        await remove(id);
        await catalogue.refresh();
      });
      await newRunner(postgres).stepAll(running);
      expect(directory.find(id)).toBe(undefined);
      expect(await now(replay)).toMatchObject({
        state: 'done',
        found: 1,
        done: 0,
        skipped: { subscriptionDeleted: 1 },
      });
      expect(await rowsOf(id)).toEqual([]);
    });

  /** @returns how many notifications each look was at, made by a runner with that `postgres` */
  function asking() {
    const asked: number[] = [];
    const postgres = watching(({ name }, rows: { walked?: number }[]) => {
      if (name.startsWith('find-notifications')) asked.push(rows[0]!.walked!);
    });
    return { asked, postgres };
  }

  it('looks at few notifications with large bodies at a time, and comes to the end of them', async () => {
    const id = await newSubscription({ channels: [{ channel: 'cases', filters: { zaak_type: 'a' } }] });
    const ids = await notifications(20, { channel: 'cases' });
    await sql(`UPDATE notification SET body = jsonb_set($1::jsonb, '{data}', to_jsonb(repeat('x', 1000000)))`, [
      body('https://cases.example/1', 'a'),
    ]);
    const { asked, postgres } = asking();
    const acceptedTo = new Date((await test.now()) - hourMs / 120).toISOString();
    const replay = await create({ everythingFor: id, acceptedTo });
    expect(replay).toMatchObject({ counted: 20, isCountWhole: true });
    expect(await newRunner(postgres).stepAll(running)).toBe(20);
    expect(Math.max(...asked)).toBe(5);
    expect(await now(replay)).toMatchObject({ state: 'done', done: 20 });
    const rows = await sql<{ id: string }>('SELECT notification_id AS id FROM delivery ORDER BY 1');
    expect(rows.map((row) => row.id)).toEqual(ids);
  });

  it('looks at little more than its rate lets it send, and at more where few are meant', async () => {
    const [all, one] = [
      await newSubscription({ channels: [{ channel: 'cases', filters: {} }] }),
      await newSubscription({ channels: [{ channel: 'cases', filters: { zaak_type: 'b' } }] }),
    ];
    await notifications(600, { channel: 'cases', body: body('https://cases.example/1', 'a'), agoMs: hourMs / 30 });
    const [last] = await notifications(1, { channel: 'cases', body: body('https://cases.example/1', 'b') });
    const acceptedTo = new Date((await test.now()) - hourMs / 120).toISOString();
    const step = async (everythingFor: string) => {
      const { asked, postgres } = asking();
      const replay = await create({ everythingFor, acceptedTo }, { ratePerSecond: 1 });
      await run();
      await sql(`UPDATE replay SET next_step_at = now(), credited_at = now() - interval '1 s' WHERE id = $1`, [
        replay.id,
      ]);
      await newRunner(postgres).stepAll(running);
      expect((await now(replay)).done).toBe(1);
      await sql('DELETE FROM replay');
      return asked;
    };
    const ofAll = await step(all);
    expect(ofAll.filter((walked) => walked > 0)).toHaveLength(1);
    expect(Math.max(...ofAll)).toBeLessThan(60);
    const ofOne = await step(one);
    expect(ofOne.reduce((sum, walked) => sum + walked, 0)).toBe(601);
    // Two days, where midnight has just passed.
    expect(ofOne.length).toBeLessThan(8);
    expect(await sql('SELECT notification_id AS id FROM delivery WHERE subscription_id = $1', [one])).toEqual([
      { id: last },
    ]);
  });

  it('means nothing whose body is erased, but dead letters of it, and its dry run comes past those', async () => {
    const id = await newSubscription({ channels: [{ channel: 'cases', filters: { zaak_type: 'a' } }] });
    const fits = { channel: 'cases', body: body('https://cases.example/1', 'a') };
    const erased = await notifications(100, { ...fits, agoMs: hourMs / 15 });
    await sql('UPDATE notification SET body = NULL');
    await dead(erased.slice(0, 1), id);
    await dead(erased.slice(1, 2), id, {}, 'delivered');
    await notifications(20, { channel: 'people', agoMs: hourMs / 20 });
    const kept = await notifications(10, { ...fits, agoMs: hourMs / 30 });
    const acceptedTo = new Date((await test.now()) - hourMs / 120).toISOString();
    const selection = { everythingFor: id, acceptedTo };
    const range = {
      after: { notificationId: lowestIdAt(0), subscriptionId: lowestId },
      before: lowestIdAt(await test.now()),
    };
    const limits = { deliveries: 0, notifications: 30, ms: 60_000 };
    const meant = meantBy('replay', selection, true);
    expect(await counter.count(meant, range, directory.find(id), limits)).toMatchObject({
      count: 11,
      searchedTo: undefined,
    });
    const replay = await create(selection);
    expect(await run()).toBe(10);
    expect(await now(replay)).toMatchObject({ counted: 11, found: 11, done: 10, skipped: { bodyErased: 1 } });
    const rows = await sql<{ id: string }>(`SELECT notification_id AS id FROM delivery WHERE state = 'waiting'`);
    expect(rows.map((row) => row.id).sort()).toEqual(kept);
    expect((await replays.dryRun('replay', selection, true)).count).toBe(1);
  });

  it('sends one notification alone, whether there was a delivery or not', async () => {
    const ids = await notifications(3, { channel: 'cases', body: body('https://cases.example/1', 'a') });
    const [id, other] = [
      await newSubscription({ channels: [{ channel: 'cases', filters: {} }] }),
      await newSubscription({ channels: [{ channel: 'cases', filters: {} }] }),
    ];
    await dead(ids, other);
    const notification = ids[1]!;
    for (const selection of [
      { notification, everythingFor: id },
      { notification, subscriptions: [other] },
    ]) {
      expect(await replays.dryRun('replay', selection, true)).toMatchObject({ count: 1, notifications: 1 });
      await create(selection);
      expect(await run()).toBe(1);
    }
    const rows = await sql('SELECT notification_id AS id, subscription_id AS of FROM delivery WHERE state = $1', [
      'waiting',
    ]);
    expect(rows).toHaveLength(2);
    expect(rows).toEqual(
      expect.arrayContaining([
        { id: notification, of: id },
        { id: notification, of: other },
      ]),
    );
    for (const none of [randomUUID(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
      const selection = { notification: none, subscriptions: [other] };
      expect((await replays.dryRun('replay', selection, true)).count).toBe(0);
      expect((await create(selection)).counted).toBe(0);
    }
  });

  it('sends one that was accepted a moment ago without waiting until nothing can be committed before it', async () => {
    const [notification] = await notifications(1, { agoMs: 0, body: body('https://cases.example/1', 'a') });
    const id = await newSubscription({ channels: [{ channel: 'cases', filters: {} }] });
    const replay = await create({ notification: notification!, everythingFor: id });
    expect(await run()).toBe(1);
    expect(await now(replay)).toMatchObject({ state: 'done', done: 1 });
  });

  it('has what is committed late too, and is not done before nothing can be', async () => {
    const id = await newSubscription({ channels: [{ channel: 'cases', filters: {} }] });
    const early = await notifications(1, { agoMs: hourMs, body: body('https://cases.example/1', 'a') });
    const replay = await create({ everythingFor: id });
    expect(await newRunner(test.postgres, 300).stepAll(running)).toBe(1);
    expect((await now(replay)).state).toBe('running');
    const late = [uuidv7({ msecs: timeOfId(replay.before) - 1 })];
    await insertNotifications(sql, late, { body: body('https://cases.example/1', 'a') });
    await eventually(async () => {
      await sql('UPDATE replay SET next_step_at = now()');
      await run();
      return (await now(replay)).state === 'done';
    }, 'the replay to be done');
    const rows = await sql<{ id: string }>('SELECT notification_id AS id FROM delivery ORDER BY 1');
    expect(rows.map((row) => row.id)).toEqual([...early, ...late]);
  });

  it('stops when the subscription is deleted, and what it sent ends with that', async () => {
    await notifications(1500, { channel: 'cases', body: body('https://cases.example/1', 'a') });
    const id = await newSubscription({ channels: [{ channel: 'cases', filters: {} }] });
    const replay = await create({ everythingFor: id }, { ratePerSecond: 100 });
    await run();
    await sql(`UPDATE replay SET next_step_at = now(), credited_at = now() - interval '1 s'`);
    await run();
    const { done } = await now(replay);
    expect(done).toBeGreaterThanOrEqual(100);
    await remove(id);
    await test.postgres.dataSource.transaction((manager) => noteEndings(manager, [id], 'cancelled', 1));
    await sql('UPDATE replay SET next_step_at = now()');
    await run();
    expect(await now(replay)).toMatchObject({ state: 'stopped', stoppedBecause: 'subscription-deleted', done });
    await expect(replays.dryRun('replay', { everythingFor: id }, true)).rejects.toMatchObject({ code: 'invalid' });
  });
});
