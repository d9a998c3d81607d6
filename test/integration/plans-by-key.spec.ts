import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { bodyDaysOf } from '../../src/channels/read-body-days.js';
import { readSettings } from '../../src/config/settings.js';
import { byDelivery, digested, doneBy, notificationRangeEnd, ownedBy } from '../../src/deliveries/search-statements.js';
import { lastDigest, readBlock, readSubscribers, staleDigest } from '../../src/digests/write-digests.js';
import { firstOfContent } from '../../src/explaining/find-explained.js';
import { PostgresIdempotencyStore } from '../../src/idempotency/idempotency-store.postgres.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { asOnHotPath } from '../../src/infra/postgres/session-settings.js';
import { statement, valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { accept } from '../../src/ledger/accept.js';
import type { Accepted } from '../../src/ledger/acceptance.js';
import { reserveKey } from '../../src/ledger/created-once.js';
import { readDrops } from '../../src/ledger/drop-held.js';
import { forgetOrderEnding } from '../../src/ledger/end-of-order.js';
import { forgetEnding, readEndings } from '../../src/ledger/end-of-subscription.js';
import { findByKey } from '../../src/ledger/find-by-key.js';
import { sweepOnceKeys } from '../../src/ledger/once-key.js';
import { claimProbes, closeEndpoints, endProbes, keepProbes, openEndpoints } from '../../src/ledger/open-endpoints.js';
import { createPartition, dayOfId, partitionsBetween } from '../../src/ledger/partitions.js';
import { leaveLineItems, nextInLine } from '../../src/ledger/pass-turn.js';
import { findBodySizes } from '../../src/ledger/read-bodies.js';
import { actionsOn, subjectRows } from '../../src/notifications/find-actions.js';
import * as notifications from '../../src/notifications/find-notifications.js';
import { toldActions } from '../../src/notifications/story.js';
import { findReplay, listReplays, lockReplay } from '../../src/replays/replay-rows.js';
import { claimErasure, findErasure, findOpen, listErasures, lockErasure } from '../../src/retention/erasure-rows.js';
import { findNotification } from '../../src/retention/erasures.service.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { connectTo, pagesReadUndone } from '../support/pages-read.js';
import { contentKey, onTerms, requestKey } from '../support/once-keys.js';

const dayMs = 86_400_000;
/** In each table. */
const rows = 40_000;
/** Pages that a statement may look at. Every one of the tables has more than twice as many. */
const mostPages = 120;
const newestId = 'ffffffff-ffff-7fff-bfff-ffffffffffff';

const boundTo = ([statement, values]: [Statement, Values]): [string, unknown[]] => [
  statement.text,
  valuesOf(statement, values),
];

describe('with many rows in each table, what is asked for by its key costs what it finds:', () => {
  let database: TestDatabase;
  let postgres: Postgres;
  let hot: pg.Client;
  let admin: pg.Client;
  let version: number;
  /** Of a notification in the middle. */
  let id: string;
  /** A thousand notifications after that. */
  let later: string;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
    [hot, admin] = [await connectTo(database), await connectTo(database)];
    for (const partition of partitionsBetween(Date.now() - dayMs, Date.now() + dayMs))
      await admin.query(createPartition(partition));
    const uuid = (kind: number) => `('00000000-0000-400${kind}-8000-' || lpad(to_hex(n), 12, '0'))::uuid`;
    const each = `FROM generate_series(1, ${rows}) AS n`;
    // UUIDs of version 7 in the order of a day, all of today.
    await admin.query(
      `INSERT INTO notification (id, channel, publisher, body)
       SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n / 4096), 3, '0')
         || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'channel', 'publisher', '{}' ${each}`,
    );
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, ended_at)
       SELECT id, gen_random_uuid(), 'delivered', now() FROM notification ORDER BY id`,
    );
    for (const insertion of [
      `once_key SELECT 'tester', 'publish', n::text, ${uuid(0)}, 'hash', n % 2 = 0, now() + interval '1 hour'`,
      `idempotency_key (key, token, expires_at) SELECT n::text, 'alive/' || n, now() + interval '1 hour'`,
      `endpoint (address, reason, failures, next_probe_at) SELECT 'https://' || n || '.example', 'HTTP 503', 5, now() + interval '1 second'`,
      `order_ending SELECT ${uuid(0)}, 1`,
      `subscription_ending SELECT ${uuid(0)}, 'cancelled', 1`,
      `held_drop SELECT ${uuid(0)}, ${uuid(1)}`,
      `in_line (subscription_id, object_key, turn_nr, notification_id) SELECT ${uuid(0)}, ${uuid(1)}, 1, ${uuid(2)}`,
      `channel (id, name, documentation_link, filters, version)
       SELECT ${uuid(0)}, 'channel ' || n, 'https://example.com/documentation', '{}', 1`,
      `subscription (id, owner_client_id, callback_url, auth, channels, version, deleted_at)
       SELECT ${uuid(0)}, 'owner', 'https://receiver.example/', '', '[]', 1, CASE WHEN n > 1 THEN now() - interval '1 year' END`,
      `replay (id, kind, selection, states, only_missed, state, counted, is_count_whole, after_notification,
         after_subscription, before_id, ended_at)
       SELECT ${uuid(0)}, 'replay', '{}', '{}', true, 'done', 0, true, ${uuid(0)}, ${uuid(0)}, ${uuid(0)}, now()`,
      `erasure (id, notification_id, state, reached) SELECT ${uuid(0)}, ${uuid(1)}, 'done', ${uuid(0)}`,
      `erased_delivery (erasure_id, notification_id, subscription_id, replays, was_queued, gone_at)
       SELECT ${uuid(0)}, ${uuid(1)}, ${uuid(2)}, 0, true, now() + interval '1 hour'`,
      `audit_entry (at, client, action, subject, before, after, changed_secrets)
       SELECT now(), 'client', 'action', 'thing/' || n, '{}', '{}', '{}'`,
    ])
      await admin.query(`INSERT INTO ${insertion} ${each}`);
    await admin.query('INSERT INTO digest (from_id, to_id, bits) SELECT id, id, NULL FROM notification');
    await admin.query('ANALYZE');
    await hot.query(asOnHotPath);
    const found = await admin.query<{ id: string }>(
      `SELECT id FROM notification ORDER BY id OFFSET ${rows / 2} LIMIT 1001`,
    );
    [id, later] = [found.rows[0]!.id, found.rows.at(-1)!.id];
    const catalogue = await admin.query<{ version: string }>('SELECT version FROM catalogue');
    version = Number(catalogue.rows[0]!.version);
  });

  afterAll(async () => {
    await Promise.all([hot.end(), admin.end(), postgres.close()]);
    await database.drop();
  });

  /** Runs a statement, and undoes it. @returns the pages that it looked at */
  const pagesOf = (client: pg.Client, statement: Statement, values: Values = {}): Promise<number> =>
    pagesReadUndone(client, statement.text, valuesOf(statement, values));

  /** A ledger that explains each statement before it runs it. @returns it, and the pages that each of them looked at */
  function watched(): [Postgres, Map<string, number>] {
    const pages = new Map<string, number>();
    const look = async (statement: Statement, values?: Values) =>
      void pages.set(statement.name, await pagesOf(hot, statement, values));
    const query: Postgres['query'] = async (statement, values) => {
      await look(statement, values);
      return postgres.query(statement, values);
    };
    const affected: Postgres['affected'] = async (statement, values) => {
      await look(statement, values);
      return postgres.affected(statement, values);
    };
    return [Object.assign(Object.create(postgres) as Postgres, { query, affected }), pages];
  }

  const accepting = (ledger: Postgres, terms: Partial<Accepted>) => {
    const accepted = onTerms(terms);
    return accept(ledger, version, [accepted], { state: 'queued', process: null });
  };
  const held = (): Partial<Accepted> => {
    const subscriptionId = randomUUID();
    return { subscriptionIds: [subscriptionId], heldFor: new Map([[subscriptionId, 'endpoint-parked']]) };
  };
  const acquired = async (ledger: Postgres) => {
    const store = new PostgresIdempotencyStore(ledger);
    const [key, token] = [randomUUID(), `alive/${randomUUID()}`];
    await store.acquire({ key, token, ttlMs: 1000, requestHash: null, mayTakeOver: true });
    return { store, key, token };
  };
  const opening = { address: 'https://7.example', reason: 'HTTP 503', failures: 5, probeInMs: 1000, isAsked: false };
  const ending = { subscriptionId: '00000000-0000-4000-8000-000000000007', version: '2' };

  it.each<[string, (ledger: Postgres) => Promise<unknown>]>([
    ['accept', (ledger) => accepting(ledger, {})],
    ['accept-some-held', (ledger) => accepting(ledger, held())],
    ['accept-on-terms', (ledger) => accepting(ledger, { request: requestKey() })],
    ['accept-on-terms', (ledger) => accepting(ledger, { content: contentKey(), ...held() })],
    ['accept-on-terms', (ledger) => accepting(ledger, { content: contentKey(), expiresAt: 0 })],
    ['find-once-keys', (ledger) => accepting(ledger, { request: requestKey('7') })],
    ['find-by-key', (ledger) => findByKey(ledger, requestKey('7'))],
    ['sweep-once-keys', (ledger) => sweepOnceKeys(ledger, 0, 1000)],
    ['idempotency-acquire', acquired],
    ['idempotency-read', (ledger) => new PostgresIdempotencyStore(ledger).sealOf('7')],
    [
      'idempotency-change',
      async (ledger) => {
        const { store, key, token } = await acquired(ledger);
        await store.seal(key, token, {}, 1000);
      },
    ],
    ['idempotency-sweep', (ledger) => new PostgresIdempotencyStore(ledger).sweep(0, 1000)],
    ['open-endpoints', (ledger) => openEndpoints(ledger, [opening])],
    [
      'close-endpoints',
      (ledger) => closeEndpoints((text, values) => ledger.query(text, values), ['https://8.example'], false),
    ],
    [
      'claim-probes',
      (ledger) =>
        claimProbes(ledger, [{ address: 'https://9.example', subscriptionId: randomUUID(), isRelease: false }], {
          shortestMs: 500,
          longestMs: 60_000,
          fraction: 20,
          leaseMs: 1000,
        }),
    ],
    ['keep-probes', (ledger) => keepProbes(ledger, ['https://9.example'], 1000)],
    [
      'end-probes',
      (ledger) => endProbes(ledger, [{ address: 'https://9.example', pauseMs: 500, foundNothing: false }]),
    ],
    ['reserve-key', (ledger) => reserveKey((text, values) => ledger.query(text, values), requestKey(), id)],
    ['forget-expired-key', (ledger) => reserveKey((text, values) => ledger.query(text, values), requestKey(), id)],
    ['subscriptions-ending', (ledger) => readEndings(ledger, 100)],
    ['held-drops', (ledger) => readDrops(ledger, 100)],
    ['forget-ending', (ledger) => forgetEnding(ledger, { ...ending, state: 'cancelled' })],
    ['forget-order-ending', (ledger) => forgetOrderEnding(ledger, ending)],
  ])('%s', async (name, run) => {
    const [ledger, pages] = watched();
    await run(ledger);
    expect(pages.get(name)).toBeLessThan(mostPages);
  });

  it('of a sweep that has just looked, also while a snapshot, as a backup has one, keeps what the last ones removed', async () => {
    const backup = await connectTo(database);
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await backup.query('SELECT');
    try {
      const over = `now() - interval '1 hour' FROM generate_series(1, ${rows}) AS n`;
      await admin.query(
        `INSERT INTO once_key SELECT 'over', 'publish', n::text, gen_random_uuid(), 'hash', false, ${over}`,
      );
      await admin.query(
        `INSERT INTO idempotency_key (key, token, expires_at) SELECT 'over/' || n, 'alive/' || n, ${over}`,
      );
      for (const table of ['once_key', 'idempotency_key'])
        await admin.query(`DELETE FROM ${table} WHERE expires_at < now()`);
      const sweepsSince = async (sinceMs: number) => {
        const [ledger, pages] = watched();
        await sweepOnceKeys(ledger, sinceMs, 1000);
        await new PostgresIdempotencyStore(ledger).sweep(sinceMs, 1000);
        return ['sweep-once-keys', 'idempotency-sweep'].map((name) => pages.get(name)!);
      };
      expect(Math.max(...(await sweepsSince(Date.now() - 60_000)))).toBeLessThan(mostPages);
      expect(Math.min(...(await sweepsSince(0)))).toBeGreaterThan(mostPages);
    } finally {
      await backup.end();
      await admin.query('VACUUM ANALYZE once_key, idempotency_key');
    }
  });

  it('of a chunk, of a line, of an erasure, and of digests', async () => {
    const place = { notification_id: id, subscription_id: ending.subscriptionId, object_key: randomUUID() };
    const range = { from: id, to: later };
    const statements: [Statement, Values][] = [
      [findBodySizes(dayOfId(id)), { ids: [id] }],
      [leaveLineItems, nextInLine.bind([{ ...place, next_id: id, turn_nr: '1' }])],
      [findOpen, { after: ending.subscriptionId }],
      [claimErasure, { id: ending.subscriptionId }],
      [lastDigest, {}],
      [staleDigest, {}],
      // As many as fit into a digest, each with a delivery.
      [readBlock, { from: id, to: newestId }],
      [readSubscribers, range],
    ];
    for (const [statement, values] of statements) {
      const pages = await pagesOf(hot, statement, values);
      expect([statement.name, pages, pages < mostPages]).toEqual([statement.name, pages, true]);
    }
  });

  it('of the admin API, and of retention', async () => {
    const one = '00000000-0000-4000-8000-000000000007';
    const middle = '00000000-0000-4000-8000-000000004e20';
    const replays = { before: null, state: null, kind: null, limit: 20 };
    const subjects = ['thing/7', 'thing/8'].map((name) => ({ name, until: null }));
    const since = new Date(Date.now() - dayMs);
    const actions = { ...subjectRows.bind(subjects), told: toldActions, since, most_of_each: 1000, most: 10_000 };
    const statements: [Statement, Values][] = [
      [notifications.oneNotification, { id }],
      [notifications.duplicatesOf, { id: one, most: 100 }],
      [notifications.countDeliveries, { id, most: 1000 }],
      [notifications.subscriptionsOf, { ids: [one] }],
      [notifications.workOn, { ids: [one] }],
      [notifications.endpointsAt, { addresses: ['https://7.example'] }],
      [actionsOn, actions],
      [listReplays, replays],
      [listReplays, { ...replays, before: middle }],
      [digested, {}],
      doneBy(one),
      notificationRangeEnd({ from: id, to: newestId }, { rows: 500, bytes: undefined }),
      notificationRangeEnd({ from: id, to: newestId }, { rows: 500, bytes: 1_000_000 }),
      [findNotification(dayOfId(id)), { id }],
      [findReplay, { id: one }],
      [lockReplay, { id: one }],
      [listErasures, { before: null, limit: 20 }],
      [listErasures, { before: middle, limit: 20 }],
      [findErasure, { id: one }],
      [lockErasure, { id: one }],
      [bodyDaysOf, { names: ['channel 7', 'other'] }],
      [firstOfContent, { application: 'tester', operation: 'publish', key: '7' }],
    ];
    for (const [statement, values] of statements) {
      const pages = await pagesOf(admin, statement, values);
      expect([statement.name, pages, pages < mostPages]).toEqual([statement.name, pages, true]);
    }
  });

  it('of a search by owner, of whose subscriptions nearly all were deleted long ago', async () => {
    const newest = await admin.query<{ id: string }>('SELECT id FROM notification ORDER BY id DESC OFFSET 15 LIMIT 1');
    for (const owner of ['owner', 'another']) {
      const owned = ownedBy(owner, Date.now() - dayMs, 1000);
      const deliveries = byDelivery('delivery', { owner, from: newest.rows[0]!.id }, {}, 20);
      for (const [statement, values] of [owned, deliveries]) {
        const pages = await pagesOf(admin, statement, values);
        expect([statement.name, pages, pages < mostPages]).toEqual([statement.name, pages, true]);
      }
    }
    const { rows: found } = await admin.query(...boundTo(ownedBy('owner', Date.now() - dayMs, 1000)));
    expect(found).toEqual([{ id: '00000000-0000-4000-8000-000000000001' }]);
  });

  it('whoever reads a whole table looks at more than twice as many pages', async () => {
    const { rows: tables } = await admin.query<{ name: string; pages: number }>(
      `SELECT relid::regclass::text AS name, pg_relation_size(relid) / 8192 AS pages FROM pg_stat_user_tables
       WHERE n_live_tup >= ${rows}`,
    );
    expect(tables.length).toBeGreaterThan(12);
    expect(tables.filter(({ pages }) => Number(pages) < 2 * mostPages)).toEqual([]);
    const whole = statement('count-endpoints', 'SELECT count(*) FROM endpoint WHERE failures > 5');
    expect(await pagesOf(hot, whole)).toBeGreaterThan(2 * mostPages);
  });
});
