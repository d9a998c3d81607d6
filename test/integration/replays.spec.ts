import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { DeadLetterGroups } from '../../src/dead-letters/dead-letter-groups.service.js';
import { KeptGroups } from '../../src/dead-letters/kept-groups.service.js';
import { deadLettersToShow } from '../../src/dead-letters/dead-letters-io.js';
import type { Selection } from '../../src/deliveries/selection.js';
import type { ErrorClass } from '../../src/deliveries/error-class.js';
import type { Postgres, Query } from '../../src/infra/postgres/postgres.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import { noteEndings } from '../../src/ledger/end-of-subscription.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { dropExpired } from '../../src/ledger/drop-expired.js';
import {
  attachPartition,
  createPartition,
  dayOfId,
  idAfter,
  lowestId,
  lowestIdAt,
  partitionsBetween,
  timeOfId,
  type Partition,
} from '../../src/ledger/partitions.js';
import { replaceScheduled, type Replaced, type Replacement } from '../../src/ledger/replace-scheduled.js';
import type { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { MeantCounter } from '../../src/replays/count-meant.service.js';
import { findOnDay } from '../../src/replays/find-meant.js';
import { meantBy, type Replay } from '../../src/replays/replay.js';
import { postponeReplay } from '../../src/replays/replay-rows.js';
import { ReplayRunner } from '../../src/replays/replay-runner.service.js';
import { Replays, type Wanted } from '../../src/replays/replays.service.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { eventually } from '../support/eventually.js';
import { insertSubscription } from '../support/insert-subscription.js';
import { TestLedger } from '../support/ledger.js';
import { requestKey } from '../support/once-keys.js';
import { plainCipher } from '../support/secrets.js';
import { stacks } from '../support/stacks.js';

Logger.overrideLogger(false);

const running = new AbortController().signal;
const hourMs = 3_600_000;
const ended = 'now()';

interface Row {
  state: DeliveryState;
  held_for: string | null;
  generation: number;
  replays: number;
  failures: number;
  last_status: number | null;
  is_ended: boolean;
  is_due: boolean | null;
  replay_id: string | null;
}

describe.each(stacks)('work on a selection of deliveries, on the $name stack', (stack) => {
  let test: TestLedger;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;
  let openEndpoints: OpenEndpoints;
  let counter: MeantCounter;
  let replays: Replays;
  let runner: ReplayRunner;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
    await makeMonthsAhead(test.postgres);
    catalogue = new Catalogue(test.postgres);
    directory = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
    openEndpoints = new OpenEndpoints(test.postgres, test.events);
    counter = new MeantCounter(test.postgres);
    replays = new Replays(test.postgres, counter, catalogue, directory);
    runner = newRunner();
  });
  beforeEach(async () => {
    await test.clear();
    await test.sql('DELETE FROM replay');
    await openEndpoints.refresh();
  });
  afterAll(() => test.close());

  const newRunner = (postgres = test.postgres, statementSeconds = 0.1) =>
    new ReplayRunner(postgres, catalogue, directory, new HoldRule(openEndpoints), {
      settings: { ...test.config.settings, DATABASE_TIMEOUT: statementSeconds },
    });
  const sql = <R>(text: string, values: unknown[] = []) => test.sql<R>(text, values);

  interface Columns {
    channels?: object[];
    ordering?: string;
    pausedAt?: Date;
    url?: string;
  }
  async function newSubscription({ channels = [], ordering = 'none', pausedAt, url }: Columns = {}): Promise<string> {
    const id = randomUUID();
    const callback_url = url ?? `http://${id}.example/`;
    const columns = { id, callback_url, channels: JSON.stringify(channels), paused_at: pausedAt ?? null, ordering };
    await insertSubscription(sql, columns);
    await catalogue.refresh();
    return id;
  }

  async function remove(id: string): Promise<void> {
    await sql('UPDATE catalogue SET version = version + 1');
    await sql('UPDATE subscription SET deleted_at = now(), version = (SELECT version FROM catalogue) WHERE id = $1', [
      id,
    ]);
  }

  /** Ids of notifications of a minute ago, in their order. */
  async function notifications(count: number, more: { channel?: string; body?: string; agoMs?: number } = {}) {
    const start = (await test.now()) - (more.agoMs ?? hourMs / 60);
    const ids = Array.from({ length: count }, (_, nr) => uuidv7({ msecs: start + nr }));
    await insertNotifications(sql, ids, more);
    return ids;
  }

  async function dead(
    ids: string[],
    subscriptionId: string,
    columns: Record<string, string> = {},
    state: DeliveryState = 'failed',
  ) {
    const failed = { ended_at: ended, failures: '8', last_status: '500', last_error: "'HTTP 500'", ...columns };
    await insertDeliveries(sql, { notifications: ids, subscriptionIds: [subscriptionId], state, columns: failed });
  }

  const group = (subscriptionId: string, errorClass: ErrorClass) => ({
    subscriptionId,
    state: 'failed' as const,
    errorClass,
  });
  const named = (notificationId: string, subscriptionId: string) => ({ notificationId, subscriptionId });

  const create = (selection: Selection, more: Partial<Wanted> = {}, by = replays): Promise<Replay> =>
    by.create({
      kind: 'replay',
      selection,
      onlyMissed: true,
      ratePerSecond: null,
      startAt: undefined,
      stopAt: undefined,
      confirm: undefined,
      note: undefined,
      ...more,
    });

  const run = () => runner.stepAll(running);
  const now = async (replay: Replay): Promise<Replay> => replays.get(replay.id);

  const rowsOf = (subscriptionId: string) =>
    sql<Row>(
      `SELECT state, held_for, generation, replays, failures, last_status, replay_id, ended_at IS NOT NULL AS is_ended,
         next_at <= now() + interval '1 s' AS is_due
       FROM delivery WHERE subscription_id = $1 ORDER BY notification_id`,
      [subscriptionId],
    );
  const statesOf = async (subscriptionId: string) => (await rowsOf(subscriptionId)).map(({ state }) => state);
  const actions = async ({ id }: Replay) =>
    (
      await sql<{ action: string }>('SELECT action FROM audit_entry WHERE subject = $1 ORDER BY nr', [`replay/${id}`])
    ).map(({ action }) => action);

  describe('a replay', () => {
    it('starts a new series of attempts of each dead letter, and leaves everything else as it is', async () => {
      const id = await newSubscription();
      const [one, two, ...others] = await notifications(8);
      await dead([one!], id);
      await dead([two!], id, {}, 'expired');
      const untouched: DeliveryState[] = ['delivered', 'waiting', 'held', 'queued', 'cancelled', 'unknown'];
      for (const [nr, state] of untouched.entries()) await dead([others[nr]!], id, { held_for: "'paused'" }, state);
      const replay = await create({ subscriptions: [id] });
      expect(await run()).toBe(2);
      const rows = await rowsOf(id);
      for (const row of rows.slice(0, 2))
        expect(row).toEqual({
          state: 'waiting',
          held_for: null,
          generation: 2,
          replays: 1,
          failures: 0,
          last_status: 500,
          is_ended: false,
          is_due: true,
          replay_id: replay.id,
        });
      expect(rows.slice(2).map(({ state, generation }) => [state, generation])).toEqual(
        untouched.map((state) => [state, 1]),
      );
      expect(await now(replay)).toMatchObject({ state: 'done', counted: 2, found: 2, done: 2, skipped: {} });
      expect(await actions(replay)).toEqual(['replay.created', 'replay.started', 'replay.done']);
    });

    it('sends what has been delivered only where it was told to', async () => {
      const id = await newSubscription();
      await dead(await notifications(2), id, {}, 'delivered');
      await create({ subscriptions: [id] });
      await run();
      expect(await statesOf(id)).toEqual(['delivered', 'delivered']);
      await create({ subscriptions: [id] }, { onlyMissed: false });
      await run();
      expect(await statesOf(id)).toEqual(['waiting', 'waiting']);
    });

    it('finds the same by every route, and counts it beforehand', async () => {
      const [id, other] = [await newSubscription(), await newSubscription()];
      const early = await notifications(3, { agoMs: 2 * hourMs, channel: 'early' });
      const late = await notifications(3, { channel: 'late' });
      for (const subscription of [id, other]) {
        await dead([...early, late[0]!], subscription);
        await dead([late[1]!], subscription, { last_status: 'NULL', last_error: "'ECONNREFUSED: connect'" });
        await dead([late[2]!], subscription, {}, 'delivered');
      }
      const middle = new Date((await test.now()) - hourMs).toISOString();
      const many = [id, ...Array.from({ length: 10 }, () => randomUUID())];
      const expected: [Selection, boolean, number][] = [
        [{ subscriptions: [id] }, true, 5],
        [{ subscriptions: [id, id] }, true, 5],
        [{ subscriptions: many }, true, 5],
        [{ all: true }, true, 10],
        [{ subscriptions: [id] }, false, 6],
        [{ subscriptions: many, states: ['delivered'] }, false, 1],
        [{ channels: ['late'] }, true, 4],
        [{ channels: ['late'], subscriptions: [id] }, false, 3],
        [{ acceptedFrom: middle }, true, 4],
        [{ acceptedTo: middle }, false, 6],
        [{ errorClasses: ['connection'] }, true, 2],
        [{ errorClasses: ['status-5xx', 'connection'], subscriptions: [other], channels: ['late'] }, true, 2],
        [{ subscriptions: [randomUUID()] }, true, 0],
        [{ groups: [group(id, 'status-5xx')] }, true, 4],
        [{ groups: [id, other].map((each) => group(each, 'connection')) }, true, 2],
        [{ groups: [group(id, 'status-5xx'), group(id, 'connection')], channels: ['late'] }, true, 2],
        [{ groups: many.map((each) => group(each, 'status-5xx')) }, true, 4],
        [{ groups: [{ ...group(id, 'status-5xx'), state: 'unknown' }] }, true, 0],
        [{ deliveries: [id, other].map((each) => named(early[0]!, each)) }, true, 2],
        [{ deliveries: [early[1]!, late[0]!, late[2]!].map((each) => named(each, id)) }, true, 2],
        [{ deliveries: [named(early[0]!, id)], channels: ['late'] }, true, 0],
        [{ deliveries: [named(randomUUID(), id), named(late[2]!, other)], states: ['delivered'] }, false, 1],
      ];
      for (const [selection, onlyMissed, count] of expected) {
        const meant = [selection, onlyMissed, count];
        const {
          bySubscription,
          notifications: of,
          sample,
          ...dry
        } = await replays.dryRun('replay', selection, onlyMissed);
        expect([selection, onlyMissed, dry.count]).toEqual(meant);
        expect([...bySubscription.values()].reduce((sum, each) => sum + each, 0)).toBe(count);
        expect(of).toBe(count / (bySubscription.size || 1));
        expect(sample).toHaveLength(count);
        const before = await sql('SELECT * FROM delivery ORDER BY notification_id, subscription_id');
        const replay = await create(selection, { onlyMissed, confirm: count });
        expect([selection, onlyMissed, await run()]).toEqual(meant);
        expect(await now(replay)).toMatchObject({ state: 'done', found: count, done: count });
        await sql('DELETE FROM delivery');
        await sql('INSERT INTO delivery SELECT (json_populate_recordset(NULL::delivery, $1)).*', [
          JSON.stringify(before),
        ]);
      }
    });

    it('reads no more rows than it takes where nothing narrows it further, and else as many as it may', async () => {
      const [id, other] = [await newSubscription(), await newSubscription()];
      const ids = await notifications(12);
      for (const subscription of [id, other]) await dead(ids, subscription);
      const find = (selection: Selection, limit: number) =>
        findOnDay(
          (text, values) => test.postgres.query(text, values),
          dayOfId(ids[0]!),
          meantBy('replay', selection, true),
          { after: named(ids[0]!, lowestId), before: idAfter(ids[11]!), scan: 10, limit },
        );
      for (const selection of [{ subscriptions: [id] }, { subscriptions: [id, other] }, { all: true as const }]) {
        const { found, walked, reached } = await find(selection, 4);
        expect([selection, found.length, walked, reached?.notificationId]).toEqual([
          selection,
          4,
          4,
          found[3]!.notificationId,
        ]);
      }
      expect(await find({ subscriptions: [id] }, 100)).toMatchObject({ walked: 10, reached: named(ids[9]!, id) });
      const narrowed: Selection[] = [
        { subscriptions: [id], channels: ['cases'] },
        { subscriptions: [id], errorClasses: ['status-5xx'] },
        { groups: [group(id, 'status-5xx')] },
        { subscriptions: [id, ...Array.from({ length: 10 }, () => randomUUID())] },
      ];
      for (const selection of narrowed) expect([selection, (await find(selection, 4)).walked]).toEqual([selection, 10]);
    });

    it('is carried out once, however many dispatchers there are, and takes up where a failed step was', async () => {
      const id = await newSubscription();
      const ids = await notifications(2500);
      await dead(ids, id);
      const replay = await create({ subscriptions: [id] });
      // The last step sends and ends it, and its entry cannot be written.
      await sql(`ALTER TABLE audit_entry ADD CONSTRAINT full_disk CHECK (action <> 'replay.done') NOT VALID`);
      try {
        await Promise.all([run(), newRunner().stepAll(running), newRunner().stepAll(running)]);
        expect(await now(replay)).toMatchObject({ state: 'running', done: 2000, found: 2000 });
      } finally {
        await sql('ALTER TABLE audit_entry DROP CONSTRAINT full_disk');
      }
      await sql('UPDATE replay SET next_step_at = now()');
      await Promise.all([run(), newRunner().stepAll(running), newRunner().stepAll(running)]);
      expect(await now(replay)).toMatchObject({ state: 'done', done: 2500, found: 2500, skipped: {} });
      const [counts] = await sql<object>(
        `SELECT count(*)::int AS all, min(replays) AS least, max(replays) AS most, max(generation) AS generation FROM delivery`,
      );
      expect(counts).toEqual({ all: 2500, least: 1, most: 1, generation: 2 });
    });

    it('keeps its pace, and loses no more than it would have sent in a second', async () => {
      const id = await newSubscription();
      await dead(await notifications(1000), id);
      const replay = await create({ subscriptions: [id] }, { ratePerSecond: 100 });
      const later = async (seconds: number) => {
        await sql(`UPDATE replay SET next_step_at = now(), credited_at = now() - $1 * interval '1 s'`, [seconds]);
        return run();
      };
      await run(); // starts it
      await later(0);
      const begunAt = performance.now();
      const before = (await now(replay)).done;
      const sent = [await later(0.5), await later(0.25), await later(60)];
      expect(sent[0]).toBeGreaterThanOrEqual(50);
      expect(sent[1]).toBeGreaterThanOrEqual(25);
      expect(sent[2]).toBeGreaterThanOrEqual(100);
      // Of a minute a second's worth, and what became due while this was going on.
      const tookSeconds = (performance.now() - begunAt) / 1000;
      expect((await now(replay)).done - before).toBeLessThanOrEqual(50 + 25 + 100 + Math.ceil(100 * tookSeconds) + 1);
      // The clock of Postgres was set back: nobody waits for the time that was.
      await later(-3600);
      const times = 'SELECT credited_at <= now() AS is_now, next_step_at > credited_at AS is_later FROM replay';
      expect(await sql(times)).toEqual([{ is_now: true, is_later: true }]);
      const { done } = await now(replay);
      // On a busy machine it may be due by now; then it is not.
      await sql("UPDATE replay SET next_step_at = now() + interval '1 hour'");
      expect(await run()).toBe(0);
      expect((await now(replay)).done).toBe(done);
    });

    it('goes on after Postgres’ clock was set back, and one that is to begin at a time waits for that', async () => {
      const id = await newSubscription();
      await dead(await notifications(2), id);
      const startAt = new Date((await test.now()) + 24 * hourMs);
      const scheduled = await create({ subscriptions: [id] }, { startAt });
      const begun = await create({ subscriptions: [id] });
      await sql(`UPDATE replay SET next_step_at = next_step_at + interval '1 day' WHERE id = $1`, [begun.id]);
      expect(await run()).toBe(0);
      await runner.bringForward();
      expect(await run()).toBe(2);
      expect((await now(begun)).state).toBe('done');
      await sql(`UPDATE replay SET state = 'running', next_step_at = now() + interval '1 day' WHERE id = $1`, [
        begun.id,
      ]);
      await runner.bringForward();
      expect(await sql('SELECT next_step_at <= now() AS is_due FROM replay ORDER BY id')).toEqual([
        { is_due: false },
        { is_due: true },
      ]);
      expect(await now(scheduled)).toMatchObject({ state: 'scheduled', done: 0 });
    });

    it('holds at once what its subscription or its endpoint may not be sent now, and has it released', async () => {
      const [paused, parked, free] = [
        await newSubscription({ pausedAt: new Date() }),
        await newSubscription({ url: 'http://parked.example/hook' }),
        await newSubscription(),
      ];
      await sql(
        `INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ('http://parked.example', 'HTTP 500', 5, now() + interval '1 h')`,
      );
      await openEndpoints.refresh();
      const ids = await notifications(3);
      for (const id of [paused, parked, free]) await dead(ids, id);
      await create({ subscriptions: [paused, parked, free] });
      await run();
      const held = async (id: string) => (await rowsOf(id)).map(({ state, held_for: reason }) => [state, reason]);
      expect(await held(paused)).toEqual(Array.from({ length: 3 }, () => ['held', 'paused']));
      expect(await held(parked)).toEqual(Array.from({ length: 3 }, () => ['held', 'endpoint-parked']));
      expect(await held(free)).toEqual(Array.from({ length: 3 }, () => ['waiting', null]));
      const looked = await sql<{ id: string }>(
        'SELECT subscription_id AS id FROM held_subscription WHERE look_at <= now()',
      );
      expect(new Set(looked.map(({ id }) => id))).toEqual(new Set([paused, parked]));
    });

    it('sends in the order of acceptance, also over the border of a day', async () => {
      const id = await newSubscription();
      const midnight = Math.floor((await test.now()) / (24 * hourMs)) * 24 * hourMs;
      const wanted = [-2, -1, 0, 1].map((ms) => uuidv7({ msecs: midnight + ms }));
      await insertNotifications(sql, wanted);
      await dead(wanted, id);
      await create({ subscriptions: [id] });
      expect(await run()).toBe(4);
      const due = await sql<{ id: string; after: number }>(
        `SELECT notification_id AS id, (extract(epoch FROM next_at - min(next_at) OVER ()) * 1e6)::int AS after
         FROM delivery WHERE subscription_id = $1 ORDER BY next_at`,
        [id],
      );
      expect(due).toEqual(wanted.map((each, nr) => ({ id: each, after: nr })));
    });

    it('sends nothing before the time for which it is scheduled', async () => {
      const id = await newSubscription({
        ordering: 'per-object',
        pausedAt: new Date(),
        channels: [{ channel: 'cases', filters: {} }],
      });
      const body = JSON.stringify({ hoofdObject: 'https://cases.example/1', kenmerken: {} });
      const ids = await notifications(3, { body });
      await dead(ids.slice(0, 2), id, { object_key: `'${randomUUID()}'::uuid` });
      await sql(`UPDATE notification SET not_before = now() + interval '1 h' WHERE id = ANY ($1)`, [ids.slice(1)]);
      await create({ everythingFor: id });
      expect(await run()).toBe(3);
      const scheduled = { state: 'waiting', held_for: null, turn_nr: null, is_at_its_time: true };
      expect(
        await sql(
          `SELECT d.state, d.held_for, d.turn_nr, d.next_at = n.not_before AS is_at_its_time
           FROM delivery d JOIN notification n ON n.id = d.notification_id ORDER BY n.id`,
        ),
      ).toMatchObject([{ state: 'held', held_for: 'paused', turn_nr: '0' }, scheduled, scheduled]);
      expect(await sql('SELECT FROM in_line')).toEqual([]);
    });

    it('keeps the order of each object, across its steps', async () => {
      const id = await newSubscription({ ordering: 'per-object' });
      const ids = await notifications(1200);
      const [one, two] = [randomUUID(), randomUUID()];
      await dead(ids.slice(0, 600), id, { object_key: `'${one}'::uuid` });
      await dead(ids.slice(600), id, { object_key: `'${two}'::uuid` });
      await create({ subscriptions: [id] });
      await run();
      const line = (key: string) =>
        sql<{ id: string; state: string; held_for: string | null }>(
          `SELECT notification_id AS id, state, held_for FROM delivery WHERE object_key = $1 ORDER BY turn_nr`,
          [key],
        );
      for (const [key, expected] of [
        [one, ids.slice(0, 600)],
        [two, ids.slice(600)],
      ] as const) {
        const rows = await line(key);
        expect(rows.map((row) => row.id)).toEqual(expected);
        expect(rows.slice(0, 2)).toMatchObject([
          { state: 'waiting', held_for: null },
          { state: 'held', held_for: 'order' },
        ]);
      }
      const { deliveries } = await handOutDue(test.postgres, 10, null);
      expect(deliveries.map(({ notificationId }) => notificationId)).toEqual([ids[0], ids[600]]);
    });

    it('passes over what is for a subscription that is deleted or disabled, and says so', async () => {
      const [deleted, disabled, there] = [await newSubscription(), await newSubscription(), await newSubscription()];
      const ids = await notifications(2);
      for (const id of [deleted, disabled, there]) await dead(ids, id);
      await remove(deleted);
      await sql('UPDATE catalogue SET version = version + 1');
      await sql(
        'UPDATE subscription SET disabled_at = now(), version = (SELECT version FROM catalogue) WHERE id = $1',
        [disabled],
      );
      const replay = await create({ subscriptions: [deleted, disabled, there] });
      expect(await run()).toBe(2);
      expect(await now(replay)).toMatchObject({
        state: 'done',
        found: 6,
        done: 2,
        skipped: { subscriptionDeleted: 2, subscriptionDisabled: 2 },
      });
      expect(await statesOf(deleted)).toEqual(['failed', 'failed']);
    });

    it('does not take part in what is accepted after it was made', async () => {
      const id = await newSubscription();
      await dead(await notifications(1), id);
      const replay = await create({ subscriptions: [id] }, { startAt: new Date((await test.now()) + hourMs) });
      expect(await run()).toBe(0);
      expect((await now(replay)).state).toBe('scheduled');
      await dead(await notifications(1, { agoMs: -1000 }), id);
      await sql('UPDATE replay SET next_step_at = now()');
      expect(await run()).toBe(1);
      expect(await statesOf(id)).toEqual(['waiting', 'failed']);
    });

    it('is paused, resumed and cancelled, and stops at its time, each noted', async () => {
      const id = await newSubscription();
      await dead(await notifications(3), id);
      const replay = await create({ subscriptions: [id] });
      expect((await replays.pause(replay.id)).state).toBe('paused');
      expect((await replays.pause(replay.id)).state).toBe('paused');
      expect(await run()).toBe(0);
      expect((await replays.resume(replay.id)).state).toBe('scheduled');
      expect((await replays.cancel(replay.id)).state).toBe('cancelled');
      expect(await run()).toBe(0);
      for (const command of ['pause', 'resume', 'cancel'] as const)
        await expect(replays[command](replay.id)).rejects.toMatchObject({ code: 'replay-ended' });
      expect(await actions(replay)).toEqual(
        ['created', 'paused', 'resumed', 'cancelled'].map((each) => `replay.${each}`),
      );

      const other = await create({ subscriptions: [id] }, { stopAt: new Date((await test.now()) + hourMs) });
      await replays.pause(other.id);
      await sql(`UPDATE replay SET stop_at = now(), next_step_at = now() WHERE id = $1`, [other.id]);
      await run();
      expect(await now(other)).toMatchObject({ state: 'stopped', stoppedBecause: 'stop-time' });
      expect(await statesOf(id)).toEqual(['failed', 'failed', 'failed']);
      await expect(replays.get(randomUUID())).rejects.toMatchObject({ code: 'not_found' });
    });

    it('stays paused when that was asked for while a step failed', async () => {
      const id = await newSubscription();
      await dead(await notifications(1), id);
      const replay = await create({ subscriptions: [id] }, { stopAt: new Date((await test.now()) + hourMs) });
      const pausing = new Proxy(test.postgres, {
        get: (postgres, name) =>
          name === 'query'
            ? async (...[statement, values]: Parameters<typeof postgres.query>) => {
                if (statement === postponeReplay) await replays.pause(replay.id);
                return postgres.query(statement, values);
              }
            : (Reflect.get(postgres, name, postgres) as unknown),
      });
      await sql(`ALTER TABLE audit_entry ADD CONSTRAINT full_disk CHECK (action <> 'replay.started') NOT VALID`);
      try {
        expect(await newRunner(pausing).stepAll(running)).toBe(0);
      } finally {
        await sql('ALTER TABLE audit_entry DROP CONSTRAINT full_disk');
      }
      expect((await now(replay)).state).toBe('paused');
      const [row] = await sql<{ yes: boolean }>('SELECT next_step_at = stop_at AS yes FROM replay');
      expect(row).toEqual({ yes: true });
    });

    it('keeps no other one waiting while its steps take too long', async () => {
      const [slow, other] = [await newSubscription(), await newSubscription()];
      for (const id of [slow, other]) await dead(await notifications(1), id);
      const [first, second] = [await create({ subscriptions: [slow] }), await create({ subscriptions: [other] })];
      await sql(
        `CREATE FUNCTION too_slow() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;
         CREATE TRIGGER too_slow BEFORE INSERT ON audit_entry FOR EACH ROW
         WHEN (NEW.subject = 'replay/${first.id}') EXECUTE FUNCTION too_slow()`,
      );
      try {
        expect(await run()).toBe(1);
      } finally {
        await sql('DROP FUNCTION too_slow CASCADE');
      }
      expect([(await now(first)).state, (await now(second)).state]).toEqual(['scheduled', 'done']);
    });

    it('of everything needs the count of the dry run, to a hundredth', async () => {
      const id = await newSubscription();
      await dead(await notifications(150), id);
      const all: Selection = { all: true };
      expect(await replays.dryRun('replay', all, true)).toMatchObject({ count: 150, needsConfirm: true });
      for (const confirm of [undefined, 0, 148, 152, 15_000])
        await expect(create(all, { confirm })).rejects.toMatchObject({
          code: 'selection-not-confirmed',
          detail: expect.stringContaining('150'),
        });
      await expect(create({ subscriptions: [id] }, { confirm: 7 })).rejects.toMatchObject({ status: 409 });
      expect((await create(all, { confirm: 151 })).counted).toBe(150);
    });

    it('of what is cancelled may mean fewer than were confirmed, which were delivered meanwhile, but not more', async () => {
      const id = await newSubscription();
      const ids = await notifications(150);
      await dead(ids, id, { ended_at: 'NULL', next_at: 'now()' }, 'waiting');
      const selection = { subscriptions: [id] };
      for (const confirm of [0, 148])
        await expect(create(selection, { kind: 'cancel', confirm })).rejects.toMatchObject({
          code: 'selection-not-confirmed',
        });
      expect((await create(selection, { kind: 'cancel', confirm: 15_000 })).counted).toBe(150);
    });

    it('that could not be counted to the end is confirmed by another count of that kind', async () => {
      const id = await newSubscription();
      await dead(await notifications(60), id);
      const limits = { deliveries: 40, notifications: 40, ms: 60_000 };
      const hasty = {
        now: () => counter.now(),
        count: (...[meant, range, subscription]: Parameters<MeantCounter['count']>) =>
          counter.count(meant, range, subscription, limits),
      } as MeantCounter;
      const hurried = new Replays(test.postgres, hasty, catalogue, directory);
      const selection = { subscriptions: [id] };
      for (const confirm of [undefined, 19])
        await expect(create(selection, { confirm }, hurried)).rejects.toMatchObject({
          code: 'selection-not-confirmed',
        });
      for (const confirm of [20, 55])
        expect(await create(selection, { confirm }, hurried)).toMatchObject({ counted: 40, isCountWhole: false });
    });

    it('says how far the dry run looked where it could not look at everything', async () => {
      const id = await newSubscription();
      const ids = await notifications(100);
      await dead(ids, id);
      const meant = meantBy('replay', { subscriptions: [id] }, true);
      const range = { after: { notificationId: ids[9]!, subscriptionId: id }, before: ids[90]! };
      const limits = { deliveries: 30, notifications: 30, ms: 60_000 };
      const some = await counter.count(meant, range, undefined, limits);
      expect(some).toMatchObject({ count: 30, notifications: 30 });
      expect(some.searchedTo).toBe(Number.parseInt(ids[39]!.replace('-', '').slice(0, 12), 16));
      expect(await counter.count(meant, range, undefined, { ...limits, deliveries: 1000 })).toMatchObject({
        count: 80,
        searchedTo: undefined,
      });
      expect((await counter.count(meant, range, undefined, { ...limits, ms: -1 })).count).toBe(0);
    });
  });

  describe('a day that is away', () => {
    const dayMs = 24 * hourMs;

    /** @returns its partitions, and a dead letter of it, of long ago */
    async function oldDay(daysAgo: number, subscriptionId: string) {
      const at = (await test.now()) - daysAgo * dayMs;
      const partitions = partitionsBetween(at, at);
      for (const partition of partitions) await sql(createPartition(partition));
      const old = uuidv7({ msecs: at });
      await insertNotifications(sql, [old]);
      await dead([old], subscriptionId, { ended_at: "now() - interval '20 days'" });
      return { partitions, old };
    }
    const leave = async (partitions: Partition[]) => {
      for (const { table, name } of partitions.toReversed()) await sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
    };
    const comeBack = async (partitions: Partition[]) => {
      for (const partition of partitions) await sql(attachPartition(partition));
    };
    async function drop(): Promise<string[]> {
      const events: string[] = [];
      const note = ({ event }: { event: string }) => void events.push(event);
      await dropExpired(test.postgres, 30, { log: note, error: note }, running);
      return events;
    }
    const stepNow = async () => {
      await sql('UPDATE replay SET next_step_at = now() WHERE next_step_at IS NOT NULL');
      await run();
    };

    it('is counted, waited for by a replay that means something of it, and brought back for that', async () => {
      const id = await newSubscription();
      const { partitions, old } = await oldDay(40, id);
      const [recent] = await notifications(1);
      await dead([recent!], id);
      await leave(partitions.slice(1)); // a backup reads the notifications
      expect(await replays.dryRun('replay', { subscriptions: [id] }, true)).toMatchObject({
        count: 2,
        searchedTo: undefined,
      });
      expect(await new DeadLetterGroups(test.postgres).find({ subscriptionId: id })).toMatchObject({
        groups: [{ count: 2, oldest: old, newest: recent }],
        isComplete: true,
      });
      const replay = await create({ subscriptions: [id] });
      await run();
      await stepNow();
      expect(await now(replay)).toMatchObject({ state: 'running', counted: 2, found: 0 });
      expect(await drop()).toEqual(['ledger.day-kept-unfinished']);
      await stepNow();
      expect(await now(replay)).toMatchObject({ state: 'done', found: 2, done: 2 });
      expect(await statesOf(id)).toEqual(['waiting', 'waiting']);
      await sql("UPDATE delivery SET state = 'delivered', next_at = NULL");
      expect(await drop()).toEqual(['ledger.day-dropped']);
    });

    it('keeps no replay waiting that means nothing of it, and none that only closes what it has', async () => {
      const [one, other] = [await newSubscription(), await newSubscription()];
      const { partitions } = await oldDay(41, one);
      await dead(await notifications(1), other);
      await leave(partitions);
      const ofOther = await create({ subscriptions: [other] });
      const closing = await create({ subscriptions: [one] }, { kind: 'close', note: 'seen' });
      await run();
      expect(await now(ofOther)).toMatchObject({ state: 'done', done: 1 });
      expect(await now(closing)).toMatchObject({ state: 'done', done: 1 });
      await comeBack(partitions);
      expect(await statesOf(one)).toEqual(['cancelled']);
      expect(await drop()).toEqual(['ledger.day-dropped']);
    });

    it('is kept for no replay that has come past it, is paused, or has ended', async () => {
      const id = await newSubscription();
      await oldDay(42, id);
      const replay = await create({ subscriptions: [id] }, { kind: 'replay' });
      await sql("UPDATE replay SET state = 'running', started_at = now()");
      expect(await drop()).toEqual(['ledger.day-kept-unfinished']);
      await replays.pause(replay.id);
      expect(await drop()).toEqual(['ledger.day-dropped']);
      await oldDay(42, id);
      await replays.resume(replay.id);
      await sql('UPDATE replay SET after_notification = $1', [lowestIdAt((await test.now()) - dayMs)]);
      expect(await drop()).toEqual(['ledger.day-dropped']);
    });
  });

  describe('a replay of everything for a subscription', () => {
    const body = (object: string, kind: string) =>
      JSON.stringify({ hoofdObject: object, kenmerken: { zaakType: kind } });

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
        const postgres = Object.create(test.postgres) as Postgres;
        postgres.transaction = <T>(work: (query: Query) => Promise<T>) =>
          test.postgres.transaction((query) =>
            work(async (statement, values) => {
              const rows = await query<{ notification_id?: string }>(statement, values);
              if (rows.some((row) => row.notification_id === notification) && !replacing) {
                replacing = replaceScheduled(test.postgres, version, replacement);
                replacing.then(
                  () => (isReplaced = true),
                  () => undefined,
                );
                await eventually(isAwaited, 'the replacement, or its waiting');
              }
              return rows as never[];
            }),
          );
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
        const postgres = Object.create(test.postgres) as Postgres;
        postgres.transaction = <T>(work: (query: Query) => Promise<T>) =>
          test.postgres.transaction((query) =>
            work(async (statement, values) => {
              const rows = await query(statement, values);
              if (statement.name === 'oldest-transaction') {
                await remove(id);
                await catalogue.refresh();
              }
              return rows as never[];
            }),
          );
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

    it('has nothing wait for its turn that died while its subscription kept order, when it does not any more', async () => {
      const id = await newSubscription();
      const ids = await notifications(3);
      await dead(ids, id, { object_key: `'${randomUUID()}'::uuid` });
      await create({ subscriptions: [id] });
      expect(await run()).toBe(3);
      expect(await statesOf(id)).toEqual(['waiting', 'waiting', 'waiting']);
      expect((await handOutDue(test.postgres, 10, null)).deliveries.map((each) => each.notificationId)).toEqual(ids);
      expect(await sql('SELECT FROM turn')).toEqual([]);
    });

    /** @returns how many notifications each look was at, made by a runner with that `postgres` */
    function asking() {
      const asked: number[] = [];
      const postgres = Object.create(test.postgres) as Postgres;
      postgres.transaction = <T>(work: (query: Query) => Promise<T>) =>
        test.postgres.transaction((query) =>
          work(async (statement, values) => {
            const rows = await query<{ walked?: number }>(statement, values);
            if (statement.name.startsWith('find-notifications')) asked.push(rows[0]!.walked!);
            return rows as never[];
          }),
        );
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
      for (const none of [
        randomUUID(),
        '00000000-0000-0000-0000-000000000000',
        'ffffffff-ffff-ffff-ffff-ffffffffffff',
      ]) {
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

  it('cancels what is not ended, and gives up its place in line', async () => {
    const id = await newSubscription();
    const ids = await notifications(5);
    const object = randomUUID();
    await dead([ids[0]!], id, { ended_at: 'NULL', next_at: 'now()' }, 'waiting');
    await dead(
      [ids[1]!],
      id,
      { ended_at: 'NULL', held_for: "'order'", turn_nr: '7', object_key: `'${object}'::uuid` },
      'held',
    );
    await sql('INSERT INTO in_line VALUES ($1, $2, 7, $3)', [id, object, ids[1]]);
    await dead([ids[2]!], id, { ended_at: 'NULL' }, 'queued');
    await dead([ids[3]!], id);
    await dead([ids[4]!], id, {}, 'delivered');
    const job = await create({ subscriptions: [id] }, { kind: 'cancel' });
    expect(await run()).toBe(3);
    expect(await now(job)).toMatchObject({ kind: 'cancel', state: 'done', counted: 3, done: 3 });
    expect(await rowsOf(id)).toMatchObject([
      { state: 'cancelled', generation: 2, held_for: null, is_ended: true, replay_id: job.id },
      { state: 'cancelled', generation: 2, held_for: null, is_ended: true },
      { state: 'cancelled', generation: 2, is_ended: true },
      { state: 'failed', generation: 1 },
      { state: 'delivered', generation: 1 },
    ]);
    expect(await sql('SELECT FROM in_line')).toEqual([]);
  });

  it('closes dead letters, which keep what they died of and when, and can still be sent again', async () => {
    const id = await newSubscription();
    const ids = await notifications(3);
    await dead(ids.slice(0, 2), id, { ended_at: `now() - interval '1 h'` });
    await dead([ids[2]!], id, {}, 'delivered');
    const job = await create({ subscriptions: [id] }, { kind: 'close', note: 'the receiver has them by other means' });
    expect(await run()).toBe(2);
    expect(await rowsOf(id)).toMatchObject([
      { state: 'cancelled', last_status: 500, replay_id: job.id },
      { state: 'cancelled', last_status: 500 },
      { state: 'delivered', replay_id: null },
    ]);
    const [{ old }] = (await sql<{ old: number }>(
      `SELECT count(*)::int AS old FROM delivery WHERE state = 'cancelled' AND ended_at < now() - interval '59 min'`,
    )) as [{ old: number }];
    expect(old).toBe(2);
    await create({ subscriptions: [id], states: ['cancelled'] });
    expect(await run()).toBe(2);
    expect(await statesOf(id)).toEqual(['waiting', 'waiting', 'delivered']);
  });

  describe('dead letters in groups', () => {
    const refused = { last_status: 'NULL', last_error: "'ECONNREFUSED: connect'" };
    const find = (...args: Parameters<DeadLetterGroups['find']>) => new DeadLetterGroups(test.postgres).find(...args);
    const counts = ({
      groups,
    }: {
      groups: { subscriptionId: string; state: string; errorClass: string; count: number }[];
    }) => groups.map(({ subscriptionId, state, errorClass, count }) => [subscriptionId, state, errorClass, count]);

    it('are counted by subscription, state and error class, with the oldest, the newest and what it died of', async () => {
      const [id, deleted] = [await newSubscription(), randomUUID()];
      const [tomorrow, today] = [await notifications(2, { agoMs: -24 * hourMs }), await notifications(4)];
      await dead([...today.slice(0, 3), ...tomorrow], id);
      await dead([today[3]!], id, refused);
      await dead([today[0]!], deleted, refused, 'unknown');
      await dead([today[1]!], deleted, {}, 'expired');
      await dead([today[2]!], deleted, {}, 'delivered');
      await dead([today[3]!], deleted, {}, 'cancelled');
      await sql(
        `UPDATE delivery SET last_error = 'HTTP 500: the newest', ended_at = '2026-11-22T10:00:00Z' WHERE notification_id = $1`,
        [tomorrow[1]],
      );
      const found = await find({});
      expect(new Set(counts(found))).toEqual(
        new Set([
          [id, 'failed', 'status-5xx', 5],
          [id, 'failed', 'connection', 1],
          [deleted, 'unknown', 'connection', 1],
          [deleted, 'expired', 'expired', 1],
        ]),
      );
      expect(found).toMatchObject({ isComplete: true, searchedTo: undefined });
      await catalogue.refresh();
      const [most, ...others] = deadLettersToShow({ ...found, asOf: new Date() }, (each) =>
        directory.find(each),
      ).groups;
      expect(most).toMatchObject({
        subscription: 'active',
        callbackUrl: `http://${id}.example/`,
        owner: 'owner',
        isAtLeast: false,
        oldestAcceptedAt: new Date(timeOfId(today[0]!)).toISOString(),
        newestAcceptedAt: new Date(timeOfId(tomorrow[1]!)).toISOString(),
        newest: { notificationId: tomorrow[1], lastStatus: 500, lastError: 'HTTP 500: the newest' },
      });
      expect(others.filter(({ subscription }) => subscription === 'deleted')).toMatchObject(
        Array(2).fill({ subscriptionId: deleted, callbackUrl: null, owner: null }),
      );
    });

    it('are narrowed by subscription, channel, state, error class, replay and time', async () => {
      const [id, other] = [await newSubscription(), await newSubscription()];
      const [early, late] = [
        await notifications(2, { agoMs: hourMs, channel: 'early' }),
        await notifications(1, { channel: 'late' }),
      ];
      await dead([...early, ...late], id);
      await dead(early, other, refused);
      const replay = await create({ subscriptions: [other] }, { kind: 'close', note: 'seen' });
      await sql('UPDATE delivery SET replay_id = $1 WHERE notification_id = $2', [replay.id, early[0]]);
      expect(await replays.dryRun('replay', { replay: replay.id, subscriptions: [id] }, true)).toMatchObject({
        count: 1,
      });
      const middle = early[1]!;
      const sought: [Parameters<typeof find>[0], [string, number][]][] = [
        [
          {},
          [
            [id, 3],
            [other, 2],
          ],
        ],
        [{ subscriptionId: id }, [[id, 3]]],
        [{ subscriptionId: id, state: 'unknown' }, []],
        [{ state: 'failed', errorClass: 'connection' }, [[other, 2]]],
        [{ channel: 'late' }, [[id, 1]]],
        [{ channel: 'early', errorClass: 'status-5xx' }, [[id, 2]]],
        [{ replayId: replay.id, subscriptionId: id }, [[id, 1]]],
        [{ from: middle, subscriptionId: id }, [[id, 2]]],
        [{ before: middle, subscriptionId: other }, [[other, 1]]],
        [{ from: late[0]!, before: middle }, []],
      ];
      for (const [each, expected] of sought)
        expect([each, (await find(each)).groups.map(({ subscriptionId, count }) => [subscriptionId, count])]).toEqual([
          each,
          expected,
        ]);
    });

    it('say where there may be more, and count those of which there are few', async () => {
      const [many, few] = [await newSubscription(), await newSubscription()];
      const [old, recent] = [await notifications(300), await notifications(20, { agoMs: -24 * hourMs })];
      await dead(old, many);
      await dead([old[0]!, recent[0]!], few, refused);
      const limits = { rows: 150, rowsOfChannel: 150, heads: 100, ms: 60_000 };
      const { groups, ...rest } = await find({}, limits);
      expect(rest).toEqual({ isComplete: false, searchedTo: undefined });
      expect(groups.map(({ subscriptionId, count, isAtLeast }) => [subscriptionId, count, isAtLeast])).toEqual([
        [many, 148, true],
        [few, 2, false],
      ]);
      expect(await find({ subscriptionId: few, channel: 'cases' }, limits)).toMatchObject({ isComplete: true });
      // The newest day has one head; there is room for no other.
      const cut = await find({}, { ...limits, heads: 2 });
      expect(cut.isComplete).toBe(false);
      expect(cut.groups.every(({ isAtLeast }) => isAtLeast)).toBe(true);
      expect(counts(cut)).toContainEqual([few, 'failed', 'connection', expect.any(Number)]);
      expect(cut.searchedTo).toBeGreaterThan(timeOfId(old[299]!));
      // Those that have some in another state only take room as well.
      expect(await find({ state: 'unknown' }, { ...limits, heads: 2 })).toMatchObject({
        groups: [],
        isComplete: false,
      });
      const { searchedTo } = await find({}, { ...limits, heads: 1 });
      expect(new Date(searchedTo!).toISOString()).toMatch(/^20/);
      expect(await find({}, { ...limits, ms: -1 })).toEqual({
        groups: [],
        isComplete: false,
        searchedTo: expect.any(Number),
      });
    });

    it('are as of the time of Postgres, whatever the clock of the process says', async () => {
      const ledgerMs = Date.parse('2025-06-01T12:00:00Z');
      const heartbeat = { ledgerNow: () => ledgerMs } as Heartbeat;
      const kept = new KeptGroups(new DeadLetterGroups(test.postgres), heartbeat);
      expect((await kept.find({})).asOf).toEqual(new Date(ledgerMs));
    });

    it('are found once for all who look at the same moment, and again after that', async () => {
      const id = await newSubscription();
      await dead(await notifications(1), id);
      const kept = new KeptGroups(new DeadLetterGroups(test.postgres), test.heartbeat);
      const [one, other] = [kept.find({}), kept.find({})];
      expect(one).toBe(other);
      expect(kept.find({ subscriptionId: id })).not.toBe(one);
      await one;
      await sql(`UPDATE delivery SET state = 'delivered'`);
      await eventually(async () => (await kept.find({})).groups.length === 0, 'it to be found again');
      // Nothing is kept of what nobody is given any more.
      const sizes = () => (Reflect.get(kept, 'kept') as Map<string, unknown>).size;
      for (let minute = 0; minute < 5; minute++) await kept.find({ from: lowestIdAt(minute * 60_000) });
      await eventually(async () => {
        await kept.find({});
        return sizes() === 1;
      }, 'the others to be forgotten');
    });
  });

  it('is forgotten long after its end', async () => {
    const id = await newSubscription();
    const [old, recent, open] = [
      await create({ subscriptions: [id] }),
      await create({ subscriptions: [id] }),
      await create({ subscriptions: [id] }),
    ];
    await replays.cancel(old.id);
    await replays.cancel(recent.id);
    await sql(`UPDATE replay SET ended_at = now() - interval '10 days' WHERE id = $1`, [old.id]);
    await runner.sweep(9);
    const listed = await replays.list({}, 10);
    expect(listed.map((each) => each.id)).toEqual([open.id, recent.id].sort().reverse());
    expect(await replays.list({ state: 'cancelled' }, 10)).toMatchObject([{ id: recent.id }]);
    expect(await replays.list({ before: recent.id, kind: 'cancel' }, 10)).toEqual([]);
  });
});
