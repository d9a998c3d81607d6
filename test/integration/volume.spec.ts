import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { findUnsettled } from '../../scripts/bench/settled.mjs';
import { volumeCases } from '../../scripts/volume/cases.mjs';
import type { Comparison, Loop } from '../../scripts/volume/compare.mjs';
import { Database } from '../../scripts/volume/database.mjs';
import { emptyLedger, FilledDays, idleSubscriptions } from '../../scripts/volume/filled-days.mjs';
import { addDeleted, setThere } from '../../scripts/volume/idle-subscriptions.mjs';
import { missedGoals, toJson } from '../../scripts/volume/report.mjs';
import { readStatements } from '../../scripts/volume/statement-log.mjs';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { TestLedger } from '../support/ledger.js';
import { plainCipher } from '../support/secrets.js';

Logger.overrideLogger(false);
const rows = 30;

describe('the benchmark of volume', () => {
  let place: TestDatabase;
  let test: TestLedger;
  let database: Database;

  beforeAll(async () => {
    place = await createDatabase();
    test = await TestLedger.open({ DATABASE_URL: place.url });
    database = new Database(place.url);
    for (const _ of [1, 2, 3]) {
      await test.sql(
        `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
         VALUES (gen_random_uuid(), 'bench', 'http://127.0.0.1:9/', '', '[{"channel":"bench-fan-out","filters":{}}]', 1)`,
      );
    }
  });

  afterAll(async () => {
    await database.close();
    await test.close();
    await place.drop();
  });

  describe.each(volumeCases.flatMap(({ name, deliveries }) => (deliveries ? [{ name, deliveries }] : [])))(
    'with $name',
    ({ deliveries }) => {
      it('exchanges the running ledger for a filled one, and back', async () => {
        const [own] = await test.accept();
        const days = new FilledDays(database, () => {});
        await days.fill(rows, deliveries, await idleSubscriptions(database));
        expect(await counts()).toEqual({ notification: 1, delivery: 1, attempt: 0 });

        await days.exchange();
        expect(await counts()).toEqual({ notification: rows, delivery: rows, attempt: deliveries.attempt ? rows : 0 });
        expect(await orphans()).toBe(0);
        expect((await handOutDue(test.postgres, rows, null)).deliveries).toEqual([]);
        const [beside] = await test.accept();
        expect(await test.state(beside!)).toBe('queued');

        await days.exchange();
        expect(await test.state(own!)).toBe('queued');
        expect(await test.state(beside!)).toBeUndefined();
        await days.drop();
        await emptyLedger(database);
        expect(await counts()).toEqual({ notification: 0, delivery: 0, attempt: 0 });
      });
    },
  );

  it('adds subscriptions of which none matches, each of which asks for a value of its own', async () => {
    const catalogue = new Catalogue(test.postgres);
    const directory = new SubscriptionDirectory(catalogue, test.postgres, plainCipher);
    const matching = async (value: string) => {
      await catalogue.refresh();
      return directory.match('bench', new Map([['bronorganisatie', value]])).length;
    };
    await addDeleted(database, { owner: 'these', rows: 5, channel: 'bench', filter: 'bronorganisatie' });
    expect(await matching('100000005')).toBe(0);
    await setThere(database, { owner: 'these', areThere: true });
    expect(await matching('100000005')).toBe(1);
    expect(await matching('000000000')).toBe(0);
    await setThere(database, { owner: 'others', areThere: false });
    expect(await matching('100000005')).toBe(1);
    await setThere(database, { owner: 'these', areThere: false });
    expect(await matching('100000005')).toBe(0);
  });

  it('reads from the log of PostgreSQL which statement of Heraut took how long', () => {
    const names = new Map<string, string>();
    const calls = readStatements(
      log(
        { message: 'duration: 12.345 ms  execute settle 20412: \n  WITH item AS (SELECT 1)\n  SELECT 2' },
        { message: 'duration: 3.5 ms  execute hand-out-due: SELECT 3' },
        { message: 'duration: 7.000 ms  bind settle 20412: \n  WITH item AS (SELECT 1)\n  SELECT 2' },
        { message: 'duration: 6.5 ms  execute <unnamed>: SELECT  name\n FROM channel' },
        { message: 'duration: 5 ms  statement: COMMIT' },
        { message: 'duration: 900 ms  statement: CHECKPOINT', application_name: 'volume' },
        { message: 'duration: 800 ms  statement: VACUUM', backend_type: 'autovacuum worker' },
        { message: 'checkpoint complete', backend_type: 'checkpointer' },
      ),
      names,
    );
    expect(calls).toEqual({
      calls: [
        { name: 'settle', ms: 12.345 },
        { name: 'hand-out-due', ms: 3.5 },
        { name: 'settle (plan)', ms: 7 },
        { name: 'SELECT name FROM channel', ms: 6.5 },
        { name: 'COMMIT', ms: 5 },
      ],
      cancelled: [],
    });
    const cancelled = {
      message: 'canceling statement due to statement timeout',
      state_code: '57014',
      statement: '\n  WITH item AS (SELECT 1)\n  SELECT 2',
    };
    expect(readStatements(log(cancelled), names)).toEqual({ calls: [], cancelled: ['settle'] });
  });

  it('leaves the line that is still being written', () => {
    expect(readStatements('{"message":"duration: 12', new Map())).toEqual({ calls: [], cancelled: [] });
  });

  it('writes the ratio to the empty ledger, and the slowest statement', () => {
    const results = { machine: 'this', date: 'today', processes: 'auto', comparisons: [comparison()] };
    expect(toJson(results)).toEqual({
      machine: 'this',
      date: 'today',
      processes: 'auto',
      empty: { deliveriesPerSecond: 1000, cpuMicrosPerDelivery: 300 },
      cases: [
        {
          name: 'waiting',
          deliveriesPerSecond: 950,
          cpuMicrosPerDelivery: 310,
          ratio: 0.95,
          slowestStatement: { name: 'settle', ms: 99.9 },
          slowestOfOneRound: { name: 'each at most', ms: 2 },
        },
      ],
    });
    expect(missedGoals(results)).toEqual([]);
  });

  it('says so when no statement took long enough to be logged', () => {
    const results = { machine: 'this', date: 'today', processes: 'auto', comparisons: [comparison(loop(950))] };
    expect(toJson(results).cases[0]!.slowestStatement).toEqual({ name: 'each at most', ms: 2 });
  });

  it('says which goals were missed', () => {
    const slow = comparison(
      loop(500, [
        { name: 'end-sending', ms: 9800 },
        { name: 'end-sending', ms: 7000 },
        { name: 'settle', ms: 101 },
      ]),
      { ...loop(500), statements: { calls: [], cancelled: ['free-queued-before'] } },
    );
    expect(missedGoals({ machine: 'this', date: 'today', processes: 'auto', comparisons: [slow] })).toEqual([
      'waiting: 0.50 of the empty ledger (goal: at least 0.9)',
      'waiting: end-sending took up to 9800 ms, 2 calls more than 100 ms (goal: none)',
      'waiting: settle took up to 101 ms, 1 calls more than 100 ms (goal: none)',
      'waiting: free-queued-before was cancelled 1 times by its time limit (goal: never)',
    ]);
  });

  it('demands of a loop beside what is released that no statement takes long, and no rate', () => {
    const slow = comparison(loop(500, [{ name: 'release', ms: 101 }]));
    const shared = { ...slow, releasedPerSecond: [700, 800], once: undefined };
    const results = { machine: 'this', date: 'today', processes: 'auto', comparisons: [shared] };
    expect(toJson(results)).toMatchObject({ cases: [], released: { ratio: 0.5, releasedPerSecond: [700, 800] } });
    expect(missedGoals(results)).toEqual(['waiting: release took up to 101 ms, 1 calls more than 100 ms (goal: none)']);
  });

  it('says which statements of one round of the dispatcher took too long', () => {
    const once = { calls: [{ name: 'lease-ended', ms: 140 }], cancelled: ['write-digest'], failure: '' };
    const results = { machine: 'this', date: 'today', processes: 'auto', comparisons: [{ ...comparison(), once }] };
    expect(toJson(results).cases[0]!.slowestOfOneRound).toEqual({ name: 'lease-ended', ms: 140 });
    expect(missedGoals(results)).toEqual([
      'waiting, one round of the dispatcher: lease-ended took up to 140 ms, 1 calls more than 100 ms (goal: none)',
      'waiting, one round of the dispatcher: write-digest was cancelled 1 times by its time limit (goal: never)',
    ]);
  });

  describe('asks the ledger whether', () => {
    const run = (ids: string[]) => ({
      name: 'closed loop',
      published: { ids, troubles: [], startedMs: 0, acceptedMs: new Float64Array() },
    });

    afterEach(() => emptyLedger(database));

    it('all that was published is delivered, beside whatever else there is', async () => {
      const [one, , another] = [await test.accept(), await test.accept(), await test.accept()].flat();
      await settle('delivered', one!, another!);
      expect(await findUnsettled(database, run([one!.notificationId, '', another!.notificationId]), 1, 0)).toEqual([]);
    });

    it('some of it is not, or has another state', async () => {
      const all = [await test.accept(), await test.accept(), await test.accept(), await test.accept()].flat();
      await settle('delivered', all[0]!);
      await settle('failed', all[1]!);
      await test.sql('DELETE FROM delivery WHERE notification_id = $1', [all[3]!.notificationId]);
      const ids = all.map(({ notificationId }) => notificationId);
      expect(await findUnsettled(database, run(ids), 1, 0)).toEqual([
        'closed loop: the ledger does not say of 4 deliveries that they are delivered: 1 delivered, 1 failed, 1 queued',
      ]);
    });

    it('what is still being written comes about', async () => {
      const [one] = await test.accept();
      const found = findUnsettled(database, run([one!.notificationId]), 1, 60_000);
      await settle('delivered', one!);
      expect(await found).toEqual([]);
    });
  });

  async function settle(state: string, ...deliveries: { notificationId: string }[]): Promise<void> {
    const ids = deliveries.map(({ notificationId }) => notificationId);
    await test.sql(
      'UPDATE delivery SET state = $1::delivery_state, ended_at = now(), next_at = NULL WHERE notification_id = ANY ($2::uuid[])',
      [state, ids],
    );
  }

  async function counts(): Promise<Record<string, number>> {
    const [row] = await test.sql<Record<string, number>>(
      `SELECT (SELECT count(*) FROM notification)::int AS notification, (SELECT count(*) FROM delivery)::int AS delivery,
         (SELECT count(*) FROM attempt)::int AS attempt`,
    );
    return row!;
  }

  /** Deliveries without their notification or subscription. */
  async function orphans(): Promise<number> {
    const [row] = await test.sql<{ count: number }>(
      `SELECT count(*)::int AS count FROM delivery d
       LEFT JOIN notification n ON n.id = d.notification_id LEFT JOIN subscription s ON s.id = d.subscription_id
       WHERE n.id IS NULL OR s.id IS NULL`,
    );
    return row!.count;
  }
});

function log(...entries: Record<string, string>[]): string {
  const lines = entries.map((entry) =>
    JSON.stringify({ application_name: 'heraut', backend_type: 'client backend', ...entry }),
  );
  return `${lines.join('\n')}\n`;
}

function loop(deliveriesPerSecond: number, calls: Loop['statements']['calls'] = []): Loop {
  return { deliveriesPerSecond, cpuMicrosPerDelivery: 310, statements: { calls, cancelled: [] } };
}

function comparison(...full: Loop[]): Comparison {
  const empty = [900, 1100].map((perSecond) => ({ ...loop(perSecond), cpuMicrosPerDelivery: 300 }));
  const usual = [loop(900, [{ name: 'accept', ms: 50 }]), loop(1000, [{ name: 'settle', ms: 99.9 }])];
  return {
    name: 'waiting',
    what: 'waiting',
    rows: 2,
    empty,
    full: full.length > 0 ? full : usual,
    once: { calls: [], cancelled: [], failure: '' },
  };
}
