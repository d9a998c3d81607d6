import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { LedgerSearch } from '../../src/deliveries/search.service.js';
import { postponeReplay } from '../../src/replays/replay-rows.js';
import type { ReplayRunner } from '../../src/replays/replay-runner.service.js';
import type { Replay } from '../../src/replays/replay.js';
import type { Replays } from '../../src/replays/replays.service.js';
import { insertNotifications } from '../support/insert-deliveries.js';
import type { TestLedger } from '../support/ledger.js';
import { hourMs, ReplayScene, running } from '../support/replay-scene.js';
import { stacks } from '../support/stacks.js';

describe.each(stacks)('work on a selection of deliveries, on the $name stack', (stack) => {
  const scene = new ReplayScene(stack);
  const { newRunner, sql, newSubscription, remove, notifications, dead, create, run, now, rowsOf, statesOf } = scene;
  let test: TestLedger;
  let openEndpoints: OpenEndpoints;
  let replays: Replays;
  let runner: ReplayRunner;

  beforeAll(async () => {
    ({ test, openEndpoints, replays, runner } = await scene.open());
  });
  beforeEach(() => scene.clear());
  afterAll(() => scene.close());

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

    it('has its deliveries found at once behind any number of newer ones, also those of several steps', async () => {
      const bounds = { rows: 20, blocks: 1, digests: 1, owned: 1, bytes: 1_000_000 };
      const id = await newSubscription();
      const [before, ids, after] = [
        await notifications(100, { agoMs: 2 * hourMs }),
        await notifications(1010, { agoMs: hourMs }),
        await notifications(100),
      ];
      await dead([...before, ...after], id, {}, 'delivered');
      await dead(ids, id);
      const replay = await create({ subscriptions: [id] });
      const find = (sought: 'delivery' | 'notification') =>
        new LedgerSearch(test.postgres).find(sought, { replayId: replay.id }, undefined, 10, bounds);
      expect(await find('delivery')).toMatchObject({ keys: [], next: undefined });
      await run();
      for (const sought of ['delivery', 'notification'] as const) {
        const { keys, searchedTo } = await find(sought);
        expect(keys.map(({ notificationId }) => notificationId)).toEqual(ids.slice(-10).toReversed());
        expect(searchedTo).toBeUndefined();
      }
      const oldest = { notificationId: ids[5]!, subscriptionId: id };
      const search = new LedgerSearch(test.postgres);
      const end = await search.find('delivery', { replayId: replay.id }, oldest, 10, bounds);
      expect([end.keys.length, end.next]).toEqual([5, undefined]);
    });

    it('of which a process of the version before made a step has its deliveries looked for everywhere', async () => {
      const bounds = { rows: 20, blocks: 1, digests: 1, owned: 1, bytes: 1_000_000 };
      const id = await newSubscription();
      const [first, second] = await notifications(2);
      await dead([first!, second!], id);
      const replay = await create({ subscriptions: [id] });
      await run();
      await sql('UPDATE replay SET done_between = 1, first_done = last_done');
      const search = new LedgerSearch(test.postgres);
      const { keys } = await search.find('delivery', { replayId: replay.id }, undefined, 10, bounds);
      expect(keys.map(({ notificationId }) => notificationId)).toEqual([second, first]);
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
  });

  it('is listed from the newest on, after the one with which a page ended, and by its kind', async () => {
    const id = await newSubscription();
    const [sent, cancelling] = [
      await create({ subscriptions: [id] }),
      await create({ subscriptions: [id] }, { kind: 'cancel' }),
    ];
    const listed = async (...asked: Parameters<Replays['list']>) =>
      (await replays.list(...asked)).map((each) => each.id);
    // Two of one millisecond may have their ids in either order.
    const [newer, older] = [sent.id, cancelling.id].sort().reverse();
    expect(await listed({}, 1)).toEqual([newer]);
    expect(await listed({ before: newer }, 10)).toEqual([older]);
    expect(await listed({ before: older }, 10)).toEqual([]);
    expect(await listed({ kind: 'replay' }, 10)).toEqual([sent.id]);
    expect(await listed({ kind: 'cancel' }, 10)).toEqual([cancelling.id]);
  });
});
