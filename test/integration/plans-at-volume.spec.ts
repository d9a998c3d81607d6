import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  addItems as addActivity,
  findSeries,
  findTotals,
  findTotalsOf,
  sweepItems as sweepActivity,
} from '../../src/activity/activity-rows.js';
import { countDue, findDead, findFailing, mostLookedAt } from '../../src/alerts/look.js';
import { findNotMade } from '../../src/alerts/not-made.js';
import { readSettings } from '../../src/config/settings.js';
import { findHeads, walkHeads, walkHeadsOfChannel } from '../../src/dead-letters/find-groups.js';
import { digestCondition } from '../../src/deliveries/criteria.js';
import { attemptsOf, byKeys, lengthsOf } from '../../src/deliveries/find-deliveries.js';
import {
  byDelivery,
  candidates,
  digestRangeEnd,
  exceeds,
  inWindows,
  rangeEnd,
} from '../../src/deliveries/search-statements.js';
import { MarkFilter, mayHave } from '../../src/digests/mark-filter.js';
import { markOf } from '../../src/digests/marks.js';
import { sweepItems as sweepDigests, takeBack } from '../../src/digests/write-digests.js';
import { newestNotifications } from '../../src/explaining/filters-preview.js';
import * as explaining from '../../src/explaining/find-explained.js';
import { notificationsOfList } from '../../src/notifications/find-notifications.js';
import { endFetchedItems } from '../../src/ledger/end-fetched.js';
import * as pulling from '../../src/pulling/find-fetched.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { asOnHotPath } from '../../src/infra/postgres/session-settings.js';
import { statement, valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import {
  claimItems,
  claims,
  earlierCalls,
  findEarlierCalls,
  findStillClaimed,
} from '../../src/ledger/claim-sending.service.js';
import { cancelOne } from '../../src/ledger/cancel.js';
import { deliveryStates, handedOut, namedDeliveries, type DeliveryState } from '../../src/ledger/delivery.js';
import { findOrderEndings, freeLineItems } from '../../src/ledger/end-of-order.js';
import { replayYetToCome, scheduledIn } from '../../src/ledger/drop-expired.js';
import { dropItems, forgetDropItem, newestHeldItem } from '../../src/ledger/drop-held.js';
import { endOfSubscriptionItems } from '../../src/ledger/end-of-subscription.js';
import { cancelItems } from '../../src/ledger/cancel-erased.js';
import { eraseAnswersItems, eraseAnswersOfItems, eraseTextItems, judgeItems } from '../../src/ledger/erase-bodies.js';
import { endManyItems } from '../../src/ledger/end-many.js';
import { endSendingItems, findUndecided } from '../../src/ledger/end-sending.js';
import { freeAfterLeaseItems } from '../../src/ledger/free-after-lease.js';
import { freeOfDeadProcessesItems } from '../../src/ledger/free-of-dead-processes.js';
import { findQueued, freeQueuedBeforeItems } from '../../src/ledger/free-queued-before.js';
import { freeExpiredItems, freeTooLongItems } from '../../src/ledger/free-held.js';
import { claimLooksItems, endLooksItems, forgetItems, readBacklogsItems } from '../../src/ledger/held-subscriptions.js';
import { holdItems, holds } from '../../src/ledger/hold.service.js';
import { findDue, handOutDueItems } from '../../src/ledger/hand-out-due.js';
import { keepItems, leaveItems } from '../../src/ledger/keep-in-hand.service.js';
import { bringLooksForwardItems, postponeLooksItems } from '../../src/ledger/planned-looks.js';
import { findNotInLine, lineUpItems } from '../../src/ledger/line-up.js';
import { countDueItems, countHeldItems, countItems } from '../../src/ledger/measure.js';
import { candidatesItems, countTroubledItems } from '../../src/ledger/measure-troubled.js';
import { oldestItems } from '../../src/ledger/oldest-unfinished.js';
import { createPartition, dayOfId, lowestIdAt, partitionsBetween } from '../../src/ledger/partitions.js';
import {
  awaitedTurns,
  endTurnItems,
  findLeftItems,
  findNextItems,
  nextInLine,
  passTurnItems,
} from '../../src/ledger/pass-turn.js';
import { putBackItems } from '../../src/ledger/put-back.js';
import { findBodies } from '../../src/ledger/read-bodies.js';
import { findChannels, lockChannels } from '../../src/ledger/read-channels.js';
import { readHeldItems } from '../../src/ledger/read-held.js';
import { situationsItems } from '../../src/ledger/read-situations.js';
import { claimProbesItems } from '../../src/ledger/open-endpoints.js';
import { releaseItems } from '../../src/ledger/release.js';
import { retryOne } from '../../src/ledger/retry-now.js';
import { sendAgainItems, sentAgain } from '../../src/ledger/send-again.js';
import { readVersions, renewItems, textVersions } from '../../src/ledger/text-versions.js';
import { results, settleResults } from '../../src/ledger/settle.service.js';
import { findState } from '../../src/ledger/state-of.js';
import { findStillQueued } from '../../src/ledger/still-queued.js';
import { listItems as listProcesses, sweep as sweepProcesses } from '../../src/liveness/heartbeat.service.js';
import { findGone, findUnsealed } from '../../src/retention/erasure-rows.js';
import { findAbout } from '../../src/retention/erasure-walk.js';
import { aboutValues } from '../../src/retention/main-object.js';
import { findOldBodies } from '../../src/retention/old-bodies.js';
import { measureItems as measureReplays } from '../../src/replays/measure-unfinished.js';
import { bringForward, claimStep, findStepDue, sweepItems as sweepReplays } from '../../src/replays/replay-rows.js';
import {
  bindSearch,
  countMeant,
  countMeantOfChannels,
  findMeant,
  findNotifications,
  keepScheduled,
  routes,
  type Route,
} from '../../src/replays/search.js';
import {
  endOfUser,
  endSession,
  findSession,
  findStanding,
  sweepEnded,
  sweepTickets,
  findTicket,
  takeTicket,
} from '../../src/sessions/session-rows.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { delivered } from '../support/ledger.js';
import { newDelivery } from '../support/new-delivery.js';
import { connectTo, inlined, literalsOf, pagesRead, pagesReadUndone } from '../support/pages-read.js';

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** From the first one on. */
const anyTime = { waiting_since_ms: 0, queued_since_ms: 0, inHand_since_ms: 0, sending_since_ms: 0 };
const firstId = '00000000-0000-0000-0000-000000000000';
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
/** A subscription that is being ended, and has no delivery that waits. */
const ending = randomUUID();
const sometime = '2026-01-01T00:00:00Z';
const newestId = 'ffffffff-ffff-7fff-bfff-ffffffffffff';
/** A subscription that keeps order by object: much is held for its order, and nothing else. */
const ordered = randomUUID();
/** Of each state. A million take minutes to write; `npm run volume` has those. */
const rows = 10_000;
const digests = 1000;
/**
 * Pages that a statement may look at: what its work needs in the partitions of the days, whatever else is in them. To
 * walk what is in one state, by whatever index, takes many more, which the last test proves: so a million would be no
 * different.
 */
const mostPages = 120;

describe('with much in every state, the cost of a statement is that of its own work:', () => {
  let database: TestDatabase;
  let hot: pg.Client;
  let admin: pg.Client;
  let subscription: string;
  const ids = {} as Record<DeliveryState, string>;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    await postgres.close();
    [hot, admin] = [await connectTo(database), await connectTo(database)];
    for (const partition of partitionsBetween(Date.now() - dayMs, Date.now() + dayMs))
      await admin.query(createPartition(partition));
    subscription = randomUUID();
    await admin.query(
      `INSERT INTO process (id, roles, expires_at)
       VALUES ('alive', '{}', now() + interval '1 hour'), ('dead', '{}', now() - interval '1 hour')`,
    );
    await admin.query(`INSERT INTO subscription_ending VALUES ($1, 'cancelled', 1)`, [ending]);
    await admin.query('INSERT INTO held_drop VALUES ($1, $2)', [ending, newestId]);
    // UUIDs of version 7 in the order of a day, all of today.
    await admin.query(
      `INSERT INTO notification (id, channel, publisher, body)
       SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0')
         || '8' || lpad(to_hex(n), 15, '0'))::uuid, 'channel', 'publisher', '{}'
       FROM generate_series(1, ${rows}) AS n`,
    );
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, held_for, next_at, queued_at, process, expires_at)
       SELECT id, ('00000000-0000-4000-8000-' || lpad(to_hex(nr * 1000 + abs(hashtext(id::text)) % 100), 12, '0'))::uuid, state,
         CASE WHEN state = 'held' THEN 'endpoint-parked'::held_reason END,
         CASE WHEN state IN ('waiting', 'sending') THEN now() + interval '1 day' END,
         CASE WHEN state = 'queued' THEN now() END, CASE WHEN state IN ('queued', 'sending') THEN 'alive' END,
         CASE WHEN state = 'held' THEN now() + interval '1 day' END
       FROM notification CROSS JOIN unnest(enum_range(NULL::delivery_state)) WITH ORDINALITY AS s (state, nr)
       ORDER BY id`,
    );
    // As many objects, each with one that waits for its next attempt and has the turn, and one in line behind it.
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, held_for, next_at, object_key, turn_nr)
       SELECT id, $1::uuid, 'held'::delivery_state, 'order'::held_reason, NULL, id, 1 FROM notification
       UNION ALL SELECT id, $2::uuid, 'waiting', NULL, now() + interval '1 day', id, 0 FROM notification`,
      [ordered, randomUUID()],
    );
    await admin.query('INSERT INTO turn SELECT $1::uuid, id, id, 1 FROM notification', [ordered]);
    await admin.query('INSERT INTO in_line SELECT $1::uuid, id, 1, id FROM notification', [ordered]);
    await admin.query(`INSERT INTO order_ending VALUES ($1, 1)`, [ending]);
    await admin.query(
      `INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ('https://receiver.example', '', 5, now())`,
    );
    await admin.query(
      `INSERT INTO held_subscription (subscription_id, look_at) SELECT gen_random_uuid(), now() + interval '9 minutes'
       FROM generate_series(1, ${rows})`,
    );
    await admin.query(
      `INSERT INTO replay (id, kind, selection, states, only_missed, state, counted, is_count_whole, after_notification,
         after_subscription, before_id, ended_at)
       SELECT gen_random_uuid(), 'replay', '{}', '{}', true, 'done', 0, true, $1, $1, $1, now() FROM generate_series(1, ${rows})`,
      [ending],
    );
    await admin.query(
      `INSERT INTO session (token_hash, user_id, name, role, via, began_at, ends_at, expires_at)
       SELECT sha256(n::text::bytea)::text, 'oidc:https://provider.example/#' || n, 'somebody', 'viewer', 'oidc', now(), now() + interval '1 hour',
         now() + interval '1 day' FROM generate_series(1, ${2 * rows}) AS n`,
    );
    await admin.query(
      `INSERT INTO sign_in_ticket SELECT sha256(n::text::bytea)::text, 'heraut', '', now() + interval '1 hour'
       FROM generate_series(1, ${rows}) AS n`,
    );
    // A thousand subscriptions with which much went on, in each minute of an hour.
    await admin.query(
      `INSERT INTO activity
       SELECT 60, 'subscription', 's' || id, now() - nr * interval '1 minute', 0, 0, 1, 0, 0, now()
       FROM generate_series(1, 1000) AS id, generate_series(1, 60) AS nr`,
    );
    // Each of them is a page, and has no mark.
    await admin.query(
      `INSERT INTO digest (from_id, to_id, bits) SELECT id, id, $1 FROM notification ORDER BY id DESC LIMIT ${digests}`,
      [new MarkFilter().bytes],
    );
    await admin.query('ANALYZE');
    await hot.query(asOnHotPath);
    for (const state of deliveryStates) {
      const { rows: found } = await admin.query<{ id: string; subscription_id: string }>(
        'SELECT notification_id AS id, subscription_id FROM delivery WHERE state = $1 LIMIT 1',
        [state],
      );
      ids[state] = found[0]!.id;
      if (state === 'queued') subscription = found[0]!.subscription_id;
    }
  });

  afterAll(async () => {
    await Promise.all([hot.end(), admin.end()]);
    await database.drop();
  });

  /**
   * Runs a statement of the dispatcher by its plan for all values, and undoes it. @returns the pages that it looked at
   */
  async function pagesOf(statement: Statement, values: Values = {}): Promise<number> {
    await hot.query(`PREPARE explained AS ${statement.text}`);
    const literals = literalsOf(statement, values).join(', ');
    const pages = await pagesReadUndone(hot, `EXECUTE explained ${literals && `(${literals})`}`);
    await hot.query('DEALLOCATE explained');
    return pages;
  }

  const finders = (): [Statement, Values][] => [
    [findDue, { since_ms: 0 }],
    [handOutDueItems, { since_ms: 0, limit: 512, process: null }],
    [freeOfDeadProcessesItems, { limit: 1000 }],
    [freeAfterLeaseItems, { since_ms: 0, limit: 1000 }],
    [endSendingItems, { could_report: 'true', since_ms: 0, report_ms: 20_000, limit: 1000 }],
    [findUndecided, { could_report: 'true', since_ms: 0, report_ms: 20_000 }],
    [freeQueuedBeforeItems, { since_ms: 0, before_ms: Date.now() - dayMs, limit: 1000 }],
    [findQueued, { since_ms: 0, ms: dayMs }],
    [endOfSubscriptionItems, { subscription: ending, version: 1, limit: 1000 }],
    [findLeftItems, { since_ms: 0, for_ms: 0, limit: 1000 }],
    [findNotInLine, { since_ms: 0 }],
    [lineUpItems, { since_ms: 0, limit: 512 }],
    [findOrderEndings, { limit: 100, after: null }],
    [freeLineItems, { subscription: ending, version: 1, limit: 1000 }],
    [newestHeldItem, { subscription: ending }],
    [readHeldItems, { subscription: ending, limit: 10_000 }],
    [dropItems, { subscription: ending, up_to: newestId, noted_at: new Date().toISOString(), limit: 1000 }],
    [forgetDropItem, { subscription: ending, up_to: newestId, noted_at: new Date().toISOString() }],
    ...[false, true].map((isProbe): [Statement, Values] => [
      releaseItems,
      {
        item_subscription_id: [ordered],
        item_release_window: [16],
        item_most: [16],
        item_is_probe: [isProbe],
        process: null,
      },
    ]),
    [freeExpiredItems, { limit: 1000 }],
    [findNotMade, { after: firstId, most: 500, most_counted: 10 }],
    [
      freeTooLongItems,
      { subscription: ordered, after: firstId, before: lastId, before_ms: Date.now() + dayMs, reason: '', limit: 1000 },
    ],
    [
      endLooksItems,
      {
        item_subscription_id: [ordered],
        item_claimed_until: [new Date().toISOString()],
        item_credited_at: [new Date().toISOString()],
        item_released: [0],
        item_release_window: [16],
        item_outstanding: [0],
        item_is_backlog: [true],
        item_rate_credit: [0],
        item_next_ms: [1000],
        claim_ms: 5000,
      },
    ],
    [
      postponeLooksItems,
      {
        item_subscription_id: [ordered],
        item_claimed_until: [new Date().toISOString()],
        item_next_ms: [1000],
        release_window: 16,
      },
    ],
    [bringLooksForwardItems, { item_subscription_id: [ordered], item_next_ms: [0] }],
    [
      claimProbesItems,
      {
        item_address: ['https://receiver.example'],
        item_subscription_id: [ordered],
        item_is_release: [true],
        shortest_ms: 1,
        longest_ms: 1,
        fraction: 20,
        lease_ms: 1,
      },
    ],
    [forgetItems, { subscriptions: [ordered], idle_ms: 60_000 }],
    [claimLooksItems, { claim_ms: 5000, limit: 64 }],
    [readBacklogsItems, { limit: 10_000 }],
    [sweepProcesses, {}],
    [findStepDue, {}],
    [claimStep, {}],
    [bringForward, {}],
    [measureReplays, {}],
    [statement('scheduled-in-day', scheduledIn('notification')), {}],
    [statement('replay-yet-to-come', replayYetToCome({ from: firstId, to: newestId })), {}],
    [sweepReplays, { days: 1, limit: 1000 }],
    [sweepDigests, { begins: [lowestIdAt(0), newestId], ends: [firstId, newestId], limit: 1000 }],
    [takeBack, { until: newestId, limit: 1000 }],
    [findSession, { token_hash: '', now: sometime, ends_at: sometime, renew_before: sometime }],
    [findStanding, { token_hashes: ['a', 'b'], now: sometime }],
    [endSession, { token_hash: '' }],
    [endOfUser, { user_id: 'nobody' }],
    [sweepEnded, {}],
    [findTicket, { token_hash: '' }],
    [takeTicket, { token_hash: '', now: sometime }],
    [sweepTickets, {}],
    [sweepActivity, { seconds: 60, kept_seconds: 3_600_000, limit: 1000 }],
  ];

  it.each(finders().map(([{ name }], nr) => [name, nr] as const))(
    '%s finds that there is nothing to do',
    async (_, nr) => {
      const [statement, values] = finders()[nr]!;
      const most = statement === endSendingItems ? mostPages + sendingPages : mostPages;
      expect(await pagesOf(statement, values)).toBeLessThan(most);
    },
  );

  it('what is measured for /metrics looks at no more than it counts', async () => {
    const statements: [Statement, Values][] = [
      [countItems, { ...anyTime, most: 10 }],
      [countDueItems, { ...anyTime, most: 10 }],
      [countHeldItems, { most: 10 }],
      ...Object.values(oldestItems).map((item): [Statement, Values] => [item, anyTime]),
      [candidatesItems, { sampled: 10, candidates: 5 }],
      [countTroubledItems, { subscriptions: `{${ordered}}`, most: 10 }],
    ];
    for (const [statement, values] of statements) {
      const pages = await pagesOf(statement, values);
      expect([statement.name, pages, pages < mostPages]).toEqual([statement.name, pages, true]);
    }
  });

  it('what was counted is read and added to by what it is of', async () => {
    const tallied = Object.fromEntries(
      ['accepted', 'duplicates', 'delivered', 'failed_attempts', 'gave_up', 'fetched'].map((name) => [
        `tallied_${name}`,
        '{1}',
      ]),
    );
    const of = { seconds: 60, kind: 'subscription', from_ms: Date.now() - dayMs };
    const statements: [Statement, Values][] = [
      [addActivity, { ...tallied, tallied_kind: '{subscription}', tallied_id: '{s7}', at_ms: Date.now() }],
      [findSeries, { seconds: 60, kinds: ['subscription'], id: 's7', from_ms: of.from_ms }],
      [findSeries, { seconds: 60, kinds: ['all', 'fetched'], id: '', from_ms: of.from_ms }],
      [listProcesses, { limit: 10 }],
    ];
    for (const [statement, values] of statements) {
      const pages = await pagesOf(statement, values);
      expect([statement.name, pages, pages < mostPages]).toEqual([statement.name, pages, true]);
    }
    // As many buckets as its ten subscriptions have.
    expect(await pagesOf(findTotals, { ...of, after: 's7', limit: 10 })).toBeLessThan(mostPages + 10 * 60);
    const tenOf = Array.from({ length: 10 }, (_, nr) => `s${nr}77`);
    expect(await pagesOf(findTotalsOf, { ...of, ids: tenOf })).toBeLessThan(mostPages + 10 * 60);
  });

  it('each look of the alerts is as large as what it may find, whatever there is', async () => {
    expect(await pagesOf(countDue, { ...anyTime, most: 20 })).toBeLessThan(mostPages);
    const dead = (most: number) => pagesOf(findDead, { after: firstId, most, most_counted: 10 });
    const [few, many] = [await dead(5), await dead(50)];
    expect(few).toBeLessThan(2 * mostPages);
    expect(many).toBeLessThan(50 * 60);
    const failing = (most: number) =>
      pagesOf(findFailing, { after: firstId, after_seconds: 1, most, most_looked_at: mostLookedAt, most_counted: 10 });
    expect(await failing(1)).toBeLessThan(3 * mostPages);
    expect(await failing(3)).toBeLessThan(5 * mostPages);
  });

  it('of very many whose calls are not made, the alerts look at as many as they tell of', async () => {
    const notMade = (most: number) => pagesRead(hot, inlined(findNotMade, { after: firstId, most, most_counted: 10 }));
    await hot.query('BEGIN');
    try {
      await hot.query(`UPDATE delivery SET last_error = 'EGRESS_PROXY' WHERE state = 'waiting'`);
      expect(await notMade(5)).toBeLessThan(2 * mostPages);
      expect(await notMade(50)).toBeLessThan(50 * 40);
    } finally {
      await hot.query('ROLLBACK');
      await admin.query('VACUUM ANALYZE delivery');
    }
  });

  it('each statement that is given deliveries looks at those', async () => {
    const delivery = newDelivery({ notificationId: ids.queued, subscriptionId: subscription });
    const given = handedOut.bind([delivery]);
    const key = { notification: delivery.notificationId, subscription };
    const turn = { notification_id: ids.queued, subscription_id: ordered, object_key: ids.queued, lined_up: 1 };
    const day = dayOfId(delivery.notificationId);
    const id = delivery.notificationId;
    const next = { ids: [id], after_notification: id, after_subscription: firstId, limit: 100 };
    const statements: [Statement, Values][] = [
      [holdItems(day), holds.bind([{ ...delivery, reason: 'endpoint-busy' }])],
      [settleResults(day), results.bind([delivered(delivery)])],
      [findEarlierCalls(day), earlierCalls.bind([{ ...delivery, attempts: 1, failures: 1 }])],
      [claimItems(day), { ...claims.bind([{ ...delivery, timeoutMs: 1000, isUnheard: true }]), process: 'alive' }],
      [keepItems(day), { ...given, lease_ms: 1000, process: 'alive' }],
      [leaveItems(day), { ...given, lease_ms: 1000, holder: 'alive' }],
      [putBackItems(day), { ...given, delay_ms: 1000 }],
      [findStillQueued(day), given],
      [findStillClaimed(day), given],
      [findBodies(day), { ids: [delivery.notificationId] }],
      [findChannels(day), { ids: [delivery.notificationId] }],
      [lockChannels(day), { ids: [delivery.notificationId] }],
      [cancelOne(day), key],
      [readVersions(day), { ids: [id] }],
      [renewItems(day), { ids: [id] }],
      [eraseTextItems(day), textVersions.bind([{ id, version: '1' }])],
      [eraseAnswersOfItems(day), namedDeliveries.bind([delivery])],
      [judgeItems(day), { ...next, grace_days: 7 }],
      [eraseAnswersItems(day), next],
      [cancelItems(day), next],
      [findOldBodies(day), { channels: ['channel'], reached: lowestIdAt(day * dayMs), limit: 10 }],
      [findAbout(day), { ...aboutValues('http://x/'), reached: lowestIdAt(day * dayMs), limit: 100 }],
      [retryOne(day), key],
      [findState(day), key],
      [endManyItems(day), { ...namedDeliveries.bind([delivery]), states: ['queued'], replay: ending }],
      [
        sendAgainItems(day),
        {
          ...sentAgain.bind([{ ...delivery, nr: 1, isNew: false, heldFor: undefined, objectKey: null }]),
          states: ['queued'],
          replay: ending,
        },
      ],
      [endTurnItems(day), namedDeliveries.bind([delivery])],
      [endFetchedItems(day), namedDeliveries.bind([delivery])],
      [findNextItems(day), awaitedTurns.bind([turn])],
      [
        passTurnItems(day, day),
        {
          ...nextInLine.bind([{ ...turn, next_id: ids.queued, turn_nr: '1' }]),
          state: 'queued',
          delay_ms: null,
          process: null,
        },
      ],
    ];
    for (const [statement, values] of statements)
      expect([
        statement.name,
        (await pagesReadUndone(hot, statement.text, valuesOf(statement, values))) < mostPages,
      ]).toEqual([statement.name, true]);
  });

  const otherStatements = (): [Statement, Values][] => [
    [notificationsOfList, { ids: [ids.queued, ids.failed, ids.delivered] }],
    [explaining.notification, { id: ids.queued }],
    [explaining.deliveries, { id: ids.queued, after: firstId, limit: 20 }],
    [explaining.deliveryOf, { id: ids.queued, subscription: ordered }],
    [explaining.turns, { ids: [ordered], object_key: ids.queued }],
    [pulling.rangeEnd, { after: firstId, to: lastId, rows: 500 }],
    [
      pulling.page,
      {
        window_after: [firstId],
        window_end: [ids.queued],
        subscription,
        seen: [],
        limit: 20,
        most_bytes: 1_000_000,
      },
    ],
    [
      pulling.digested(mayHave(markOf('subscription', subscription))),
      { after: firstId, horizon: newestId, digests: 20, blocks: 16 },
    ],
    [pulling.arrivals, { after: newestId, subscriptions: [subscription, ordered], limit: 100 }],
    [newestNotifications, { channels: ['channel'], since: firstId, before: newestId, rows: 50 }],
    [situationsItems, { subscriptions: [subscription, ordered, ending], since: firstId, most: 10 }],
  ];
  it('a search for the deliveries of a selection looks at as many rows as it may, from wherever it goes on', async () => {
    const { rows: keys } = await admin.query<{ id: string }>(
      `SELECT notification_id AS id FROM delivery ORDER BY 1 OFFSET ${rows * 4} LIMIT 1`,
    );
    const middle = { notificationId: keys[0]!.id, subscriptionId: subscription };
    const day = dayOfId(middle.notificationId);
    const deliveries = [{ notificationId: ids.failed, subscriptionId: ordered }];
    const meant: Record<Route, Parameters<typeof bindSearch>[0]> = {
      deliveries: { kind: 'replay', selection: { deliveries }, states: ['failed'] },
      subscriptions: { kind: 'replay', selection: { subscriptions: [ordered, ending] }, states: ['failed', 'held'] },
      dead: { kind: 'replay', selection: { all: true }, states: ['failed', 'expired'] },
      key: { kind: 'replay', selection: { all: true }, states: ['delivered'] },
    };
    const bounds = { after: middle, before: newestId, scan: 20, limit: 20 };
    const searches: [Statement, Values][] = [
      ...routes.map((route): [Statement, Values] => [findMeant[route](day), bindSearch(meant[route], bounds)]),
      ...routes.map((route): [Statement, Values] => [
        countMeantOfChannels[route](day),
        { ...bindSearch(meant[route], bounds), sample: 5 },
      ]),
      ...routes.map((route): [Statement, Values] => [
        countMeant[route](day),
        { ...bindSearch(meant[route], bounds), sample: 5 },
      ]),
      [keepScheduled(day), { after_notification: middle.notificationId, before: bounds.before, scan: bounds.scan }],
      [
        findNotifications(day),
        {
          ...bindSearch(meant.key, bounds),
          channels: ['channel'],
          subscription: ending,
          after_notification: middle.notificationId,
        },
      ],
    ];
    for (const [statement, values] of searches) {
      const pages = await pagesOf(statement, values);
      // Each row that is meant brings its notification along.
      expect([statement.name, pages, pages < mostPages + 20 * 5]).toEqual([statement.name, pages, true]);
    }
  });

  it('dead letters are grouped by the index that has them by subscription, so many rows of each', async () => {
    const { rows: dead } = await admin.query<{ subscription_id: string }>(
      `SELECT DISTINCT subscription_id FROM delivery WHERE state = 'failed' LIMIT 5`,
    );
    const day = dayOfId(ids.failed);
    const given = {
      subscriptions: dead.map((row) => row.subscription_id),
      states: dead.map(() => 'failed'),
      befores: dead.map(() => newestId),
      from: firstId,
      replay: null,
      channel: 'channel',
    };
    const statements: [Statement, Values, number][] = [
      // Each subscription is one look into the index.
      [findHeads(day), { most: 20 }, mostPages],
      [walkHeads(day), { ...given, each: 20 }, 5 * 20 + mostPages],
      [walkHeadsOfChannel(day), { ...given, each: 20 }, 5 * 20 * 4 + mostPages],
    ];
    for (const [statement, values, most] of statements) {
      const pages = await pagesOf(statement, values);
      expect([statement.name, pages, pages < most]).toEqual([statement.name, pages, true]);
    }
  });

  it('each page of the admin API is read by an index, or is what a limited range holds', async () => {
    const [toEnd, of] = rangeEnd({}, {}, {}, { rows: 500, bytes: undefined });
    const { rows: ends } = await admin.query<{ notification_id: string; subscription_id: string }>(
      toEnd.text,
      valuesOf(toEnd, of),
    );
    const end = { notificationId: ends[0]!.notification_id, subscriptionId: ends[0]!.subscription_id };
    const key = { notificationId: ids.queued, subscriptionId: subscription };
    const window = { from: end.notificationId, to: newestId };
    const lists: [string, [Statement, Values]][] = [
      ['all', byDelivery('delivery', {}, {}, 20)],
      ['the end of a range, by its bodies', rangeEnd({}, {}, {}, { rows: 20, bytes: 1000 })],
      [
        'the end of a range of dead letters, by its bodies',
        rangeEnd({ state: 'failed' }, { state: 'failed' }, {}, { rows: 20, bytes: 1000 }),
      ],
      ['of a notification', byDelivery('delivery', { notificationId: ids.queued }, {}, 20)],
      ['of a subscription, in a range', byDelivery('delivery', { subscriptionId: subscription }, { end }, 20)],
      ['of a publisher, in a window', inWindows('delivery', { publisher: 'nobody' }, {}, [window], 20)],
      ['notifications of a publisher', inWindows('notification', { publisher: 'nobody' }, {}, [window], 20)],
      ['notifications that failed', inWindows('notification', { state: 'failed' }, {}, [window], 20)],
      ['digests of a window', candidates(digestCondition({ publisher: 'nobody' })!, window, 20)],
      ['digests of a window that have dead letters', candidates('true', window, 20, { state: 'failed' })],
      ['digests, up to a limit', digestRangeEnd(window, 20)],
      ['one', byKeys([key])],
      ['attempts', attemptsOf(dayOfId(ids.queued), [key], 20)],
      ['the length of attempts', lengthsOf(dayOfId(ids.queued), [key], 20)],
      ...otherStatements().map(([statement, values]): (typeof lists)[0] => [statement.name, [statement, values]]),
      ...(['failed', 'expired', 'unknown', 'waiting', 'held'] as const).map((state): (typeof lists)[0] => [
        `${state} of a subscription`,
        byDelivery('delivery', { state, subscriptionId: randomUUID() }, {}, 20),
      ]),
      ...(['failed', 'expired', 'unknown'] as const).map((state): (typeof lists)[0] => [
        `newest ${state}`,
        byDelivery('delivery', { state }, {}, 20),
      ]),
      ...(['failed', 'waiting', 'held', 'queued', 'sending'] as const).map((state): (typeof lists)[0] => [
        `whether ${state} are few`,
        exceeds({ state }, {}, { rows: 100, bytes: undefined }),
      ]),
      ['whether failed are few, by their bodies', exceeds({ state: 'failed' }, {}, { rows: 100, bytes: 1000 })],
    ];
    for (const [name, [statement, values]] of lists) {
      const pages = await pagesReadUndone(admin, statement.text, valuesOf(statement, values));
      // Each row of a page brings its notification along.
      expect([name, pages, pages < mostPages + 20 * 5]).toEqual([name, pages, true]);
    }
  });

  it('what may be handed out is found without passing over what is due as well and not in line yet', async () => {
    const scheduled = randomUUID();
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, next_at, object_key)
       SELECT id, $1::uuid, 'waiting', now() - interval '1 hour', id FROM notification`,
      [scheduled],
    );
    try {
      await admin.query('ANALYZE delivery');
      expect(await pagesOf(handOutDueItems, { since_ms: 0, limit: 512, process: null })).toBeLessThan(mostPages);
      expect(await pagesOf(findDue, { since_ms: 0 })).toBeLessThan(mostPages);
    } finally {
      await admin.query('DELETE FROM delivery WHERE subscription_id = $1', [scheduled]);
      await admin.query('VACUUM ANALYZE delivery');
    }
  });

  it('a look for what was held too long is as large as its limit, however much was held only now', async () => {
    const replayed = randomUUID();
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, held_for, held_since)
       SELECT id, $1::uuid, 'held', 'endpoint-parked', now() FROM notification`,
      [replayed],
    );
    try {
      await admin.query('ANALYZE delivery');
      const asked = { subscription: replayed, after: firstId, before: lastId, reason: '' };
      const pages = await pagesOf(freeTooLongItems, { ...asked, before_ms: Date.now() - dayMs, limit: 50 });
      expect(pages).toBeLessThan(mostPages);
    } finally {
      await admin.query('DELETE FROM delivery WHERE subscription_id = $1', [replayed]);
      await admin.query('VACUUM ANALYZE delivery');
    }
  });

  it('a probe is found beside any number of deliveries that have expired, and none where all have', async () => {
    const old = randomUUID();
    const address = 'https://parked.example';
    await admin.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, held_for, expires_at)
       SELECT id, $1::uuid, 'held', 'endpoint-parked', now() - interval '1 s' FROM notification`,
      [old],
    );
    await admin.query(`INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, '', 5, now())`, [
      address,
    ]);
    const item = { item_subscription_id: [old], item_is_probe: [true] };
    const looks = async () => [
      await pagesOf(releaseItems, { ...item, item_release_window: [33], item_most: [1], process: null }),
      await pagesOf(claimProbesItems, {
        item_address: [address],
        item_subscription_id: [old],
        item_is_release: [true],
        shortest_ms: 1,
        longest_ms: 1,
        fraction: 20,
        lease_ms: 1,
      }),
    ];
    try {
      await admin.query('ANALYZE delivery');
      for (const pages of await looks()) expect(pages).toBeLessThan(mostPages);
      await admin.query(
        `UPDATE delivery SET expires_at = now() + interval '1 hour'
         WHERE subscription_id = $1 AND notification_id = (SELECT max(id::text)::uuid FROM notification)`,
        [old],
      );
      for (const pages of await looks()) expect(pages).toBeLessThan(mostPages);
    } finally {
      await admin.query('DELETE FROM delivery WHERE subscription_id = $1', [old]);
      await admin.query('DELETE FROM endpoint WHERE address = $1', [address]);
      await admin.query('VACUUM ANALYZE delivery');
    }
  });

  it('an erasure finds what it waits for without passing over what waits for something else', async () => {
    await admin.query(
      `INSERT INTO erased_delivery (erasure_id, notification_id, subscription_id, replays, was_queued, gone_at)
       SELECT $1::uuid, id, gen_random_uuid(), 0, true, now() + interval '1 hour' FROM notification`,
      [ending],
    );
    try {
      await admin.query('ANALYZE erased_delivery');
      const asked = { id: ending, after_notification: firstId, after_subscription: firstId, limit: 1000 };
      expect(await pagesOf(findGone, asked)).toBeLessThan(mostPages);
      expect(await pagesOf(findUnsealed, asked)).toBeLessThan(mostPages);
    } finally {
      await admin.query('DELETE FROM erased_delivery');
    }
  });

  it('a dispatcher that has just looked does not walk over what a snapshot, as a backup has one, keeps from being removed', async () => {
    const backup = await connectTo(database);
    await backup.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await backup.query('SELECT');
    try {
      const gone = randomUUID();
      await admin.query(
        `INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, ended_at, turn_nr, object_key)
         SELECT id, $1::uuid, 'queued'::delivery_state, now() - interval '1 hour', NULL::timestamptz, NULL::timestamptz, NULL::bigint, NULL::uuid FROM notification
         UNION ALL SELECT id, gen_random_uuid(), 'queued', NULL, now() - interval '1 hour', NULL, NULL, NULL FROM notification
         UNION ALL SELECT id, gen_random_uuid(), 'waiting', now() - interval '1 hour', NULL, NULL, NULL, NULL FROM notification
         UNION ALL SELECT id, gen_random_uuid(), 'waiting', now() - interval '1 hour', NULL, NULL, NULL, id FROM notification
         UNION ALL SELECT id, gen_random_uuid(), 'sending', now() - interval '1 hour', NULL, NULL, NULL, NULL FROM notification
         UNION ALL SELECT id, gen_random_uuid(), 'delivered', NULL, NULL, now() - interval '1 hour', 0, NULL FROM notification`,
        [gone],
      );
      await admin.query(
        `DELETE FROM delivery WHERE subscription_id = $1 OR queued_at < now() - interval '30 minutes' OR next_at < now() OR turn_nr = 0 AND ended_at < now()`,
        [gone],
      );
      // Before those that are there for the other tests.
      const [lookedUpTo, upTo] = [30 * minuteMs, 25 * minuteMs];
      const looks: [Statement, Values][] = [
        [freeAfterLeaseItems, { limit: 1000 }],
        [endSendingItems, { could_report: 'true', report_ms: 20_000, limit: 1000 }],
        [findUndecided, { could_report: 'true', report_ms: 20_000 }],
        [findQueued, { ms: upTo }],
        [freeQueuedBeforeItems, { before_ms: Date.now() - upTo, limit: 1000 }],
        [findLeftItems, { for_ms: upTo, limit: 1000 }],
        [findDue, {}],
        [findNotInLine, {}],
        [lineUpItems, { limit: 512 }],
        [handOutDueItems, { limit: 512, process: null }],
      ];
      for (const [statement, values] of looks) {
        const most = statement === endSendingItems ? mostPages + sendingPages : mostPages;
        const pages = await pagesOf(statement, { ...values, since_ms: Date.now() - lookedUpTo });
        expect([statement.name, pages, pages < most]).toEqual([statement.name, pages, true]);
        const ofAll = await pagesOf(statement, { ...values, since_ms: 0 });
        expect([statement.name, ofAll, ofAll > pages + mostPages]).toEqual([statement.name, ofAll, true]);
      }
      const measuring: [Statement, Values][] = [
        ...Object.values(oldestItems).map((item): [Statement, Values] => [item, {}]),
        [countItems, { most: 10 }],
        [countDueItems, { most: 10 }],
        [countDue, { most: 10 }],
      ];
      const oldest = Object.fromEntries(Object.keys(anyTime).map((name) => [name, Date.now() - lookedUpTo]));
      for (const [item, values] of measuring) {
        const pages = await pagesOf(item, { ...values, ...oldest });
        expect([item.name, item.edition, pages, pages < mostPages]).toEqual([item.name, item.edition, pages, true]);
        const ofAll = await pagesOf(item, { ...values, ...anyTime });
        expect([item.name, item.edition, ofAll, ofAll > pages + mostPages]).toEqual([
          item.name,
          item.edition,
          ofAll,
          true,
        ]);
      }
    } finally {
      await backup.end();
      await admin.query('VACUUM ANALYZE delivery');
    }
  });

  it('a statement whose index is gone looks at many more', async () => {
    const byIndex: Record<string, string[]> = {
      delivery_queued: ['free-queued-before', 'any-queued-for', 'free-after-lease'],
      delivery_process: ['free-of-dead-processes'],
      delivery_unsent: ['end-of-subscription', 'read-held', 'drop-held', 'forget-held-drop'],
      delivery_held: ['release', 'free-held-too-long'],
      delivery_released: ['release'],
      delivery_held_expiry: ['free-held-expired'],
      delivery_not_made: ['alert-calls-not-made'],
      delivery_turn_left: ['find-turns-left'],
      replay_step: ['replay-step-due', 'claim-replay-step', 'bring-replays-forward'],
      replay_ended: ['sweep-replays'],
      session_of_user: ['end-sessions-of-user'],
      session_ends: ['sweep-sessions'],
      replay_everything_for: ['measure-unfinished-replays'],
      activity_at: ['sweep-activity'],
    };
    for (const [index, names] of Object.entries(byIndex)) {
      await hot.query('BEGIN');
      await hot.query(`DROP INDEX ${index}`);
      for (const [statement, values] of finders().filter(([{ name }]) => names.includes(name))) {
        const pages = await pagesRead(hot, inlined(statement, values));
        expect([statement.name, pages > 2 * mostPages]).toEqual([statement.name, true]);
      }
      await hot.query('ROLLBACK');
    }
  });
});

/** All that are being sent are looked at: they are no more than the workers have open calls. */
const sendingPages = 1200;
