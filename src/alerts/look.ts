import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import {
  byTimeOf,
  fromOldest,
  unfinishedSince,
  type Oldest,
  type OldestUnfinished,
} from '../ledger/oldest-unfinished.js';
import { lowestId } from '../ledger/partitions.js';
import { hours } from '../activity/activity-rows.js';
import { deadStates, isDead, type DeliveryState } from '../ledger/delivery.js';
import { errorWithoutAnswer } from '../ledger/erase-bodies.js';
import { aliveNow } from '../liveness/heartbeat.service.js';
import { mostCounted } from './alert-rules.js';

/** Subjects that one rule looks at in a round, unless it says otherwise. A rule has no more open alerts than that. */
export const mostSubjects = 500;

/** A part of the subscriptions that a rule looks at, in the order of their ids: of many, each round sees some. */
export interface Part<Found> {
  found: Found[];
  /** Subscriptions behind this one were looked at; undefined: from the first one on. */
  after: string | undefined;
  /** Those behind this one are for the next round; undefined: there are none. */
  upTo: string | undefined;
}

/** The one that a rule about subscriptions names. */
export const subjectOf = (subscriptionId: string): string => `subscription/${subscriptionId}`;

export const isWithin = ({ after, upTo }: Part<unknown>, subject: string): boolean =>
  (after === undefined || subject > subjectOf(after)) && (upTo === undefined || subject <= subjectOf(upTo));

export interface DeadOfSubscription {
  subscriptionId: string;
  /** At most `mostCounted`. */
  count: number;
  oldestNotificationId: string;
  newestNotificationId: string;
  /** Without what a receiver answered: alerts, and notes about them, are kept longer than that. */
  reason: string | null;
}

export interface FailingSubscription {
  subscriptionId: string;
  /** Deliveries that wait for another try, at most `mostCounted`. */
  count: number;
  /** When a call for one of them first failed. */
  since: Date;
  /** Without what a receiver answered. */
  reason: string | null;
}

export interface OpenFor {
  address: string;
  openedAt: Date;
  reason: string;
  failures: number;
}

export interface OldestDue extends Pick<Oldest, 'notificationId' | 'subscriptionId' | 'since'> {
  state: 'waiting' | 'queued';
}

/** Those that are due and those in the queue. */
export interface Due {
  oldest: OldestDue | undefined;
  /** At most so many of each of the two as were asked for. */
  count: number;
}

const deadOrder = 'subscription_id, state, notification_id';

const newestOf = (state: DeliveryState): string =>
  `(SELECT d.notification_id, ${errorWithoutAnswer('d')} AS reason FROM delivery d
      WHERE ${isDead('d')} AND d.state = '${state}' AND d.subscription_id = dead.subscription_id
      ORDER BY d.notification_id DESC LIMIT 1)`;

/**
 * The subscriptions that have dead letters, in the order of their ids: from each to the next by one look into the index
 * `delivery_dead`, however many dead letters there are. Deleted ones are among them, and those
 * with fewer dead letters than the rule says: of many, each round sees some.
 */
export const findDead = statement(
  'alert-dead-letters',
  `WITH RECURSIVE dead AS (
     (SELECT subscription_id, 1 AS nr FROM delivery WHERE ${isDead()} AND subscription_id > $after
      ORDER BY ${deadOrder} LIMIT 1)
     UNION ALL
     SELECT next.subscription_id, dead.nr + 1 FROM dead CROSS JOIN LATERAL (
       SELECT subscription_id FROM delivery WHERE ${isDead()} AND subscription_id > dead.subscription_id
       ORDER BY ${deadOrder} LIMIT 1
     ) next
     WHERE dead.nr < $most
   )
   SELECT dead.subscription_id, counted.count, counted.oldest, newest.notification_id AS newest, newest.reason
   FROM dead CROSS JOIN LATERAL (
     SELECT count(*)::int AS count, min(notification_id::text) AS oldest FROM (
       SELECT notification_id FROM delivery WHERE ${isDead()} AND subscription_id = dead.subscription_id
       ORDER BY ${deadOrder} LIMIT $most_counted
     ) first
   ) counted CROSS JOIN LATERAL (
     SELECT notification_id, reason FROM (${deadStates.map(newestOf).join(' UNION ALL ')}) newest_of_each
     ORDER BY notification_id DESC LIMIT 1
   ) newest
   ORDER BY dead.subscription_id`,
);

/** @param after where the round before ended; undefined: at the last one */
export async function readDead(query: Query, after: string | undefined): Promise<Part<DeadOfSubscription>> {
  const rows = await query<{
    subscription_id: string;
    count: number;
    oldest: string;
    newest: string;
    reason: string | null;
  }>(findDead, { after: after ?? lowestId, most: mostSubjects, most_counted: mostCounted });
  const found = rows.map((row) => ({
    subscriptionId: row.subscription_id,
    count: row.count,
    oldestNotificationId: row.oldest,
    newestNotificationId: row.newest,
    reason: row.reason,
  }));
  return { found, after, upTo: rows.length < mostSubjects ? undefined : rows.at(-1)!.subscription_id };
}

/** Subscriptions that one round looks at for failing ones. With more of them, several rounds do it. */
const mostTriedAt = 100;

/** Of each, so many of those that wait are looked at for some that have failed. */
export const mostLookedAt = 500;

const unsent = `state BETWEEN 'waiting' AND 'held' AND subscription_id IS NOT NULL`;

/** As `lowestIdAt`. */
const lowestIdInSql = (time: string): string =>
  `(lpad(to_hex((extract(epoch FROM ${time}) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;

/** Of those that have failed, the oldest: among all that wait, or among what was accepted since the last success. */
const triedOf = (more = ''): string =>
  `(SELECT * FROM (
         SELECT notification_id, attempts, failures, last_error, last_status FROM delivery
         WHERE ${unsent} AND state = 'waiting' AND subscription_id = unsent.subscription_id ${more}
         ORDER BY subscription_id, state, notification_id LIMIT $most_looked_at
       ) looked_at WHERE failures > 0 LIMIT $most_counted)`;

/**
 * Subscriptions of which a delivery has failed for some time, and first failed after the last one that succeeded, in
 * the order of their ids; and the last one that was looked at, where there may be others behind it (`at_end`). From
 * each to the next by one look into the index `delivery_unsent`, however many of its deliveries are held or wait. Of
 * those that wait, the oldest are looked at, and the oldest that were accepted since the last success: a receiver that
 * has refused all calls since then has refused these, whatever it refused before, and however many are scheduled for
 * later. That something was delivered is known from what is counted: a process that was killed may have taken ten
 * seconds of that along. Successes that lie ahead were counted before Postgres' clock was set back: every failure since
 * then would seem to be older.
 */
export const findFailing = statement(
  'alert-subscriptions-failing',
  `WITH RECURSIVE unsent AS (
     (SELECT subscription_id, 1 AS nr FROM delivery WHERE ${unsent} AND subscription_id > $after
      ORDER BY subscription_id, state, notification_id LIMIT 1)
     UNION ALL
     SELECT next.subscription_id, unsent.nr + 1 FROM unsent CROSS JOIN LATERAL (
       SELECT subscription_id FROM delivery WHERE ${unsent} AND subscription_id > unsent.subscription_id
       ORDER BY subscription_id, state, notification_id LIMIT 1
     ) next
     WHERE unsent.nr < $most
   )
   SELECT unsent.subscription_id, unsent.nr = $most AS at_end, failing.count, failing.since, failing.reason
   FROM unsent LEFT JOIN LATERAL (
     SELECT last_delivered_at, ${lowestIdInSql('last_delivered_at')} AS lowest_id FROM activity
     WHERE bucket_seconds = ${hours.seconds} AND kind = 'subscription' AND id = unsent.subscription_id::text
       AND last_delivered_at <= now()
     ORDER BY at DESC LIMIT 1
   ) success ON true LEFT JOIN LATERAL (
     SELECT least(count(*) OVER (), $most_counted)::int AS count, first.started_at AS since,
       ${errorWithoutAnswer('tried')} AS reason
     FROM (
       ${triedOf()} UNION ${triedOf('AND notification_id >= success.lowest_id')}
     ) tried CROSS JOIN LATERAL (
       SELECT started_at FROM attempt
       WHERE notification_id = tried.notification_id AND subscription_id = unsent.subscription_id
         AND number > tried.attempts - tried.failures
       ORDER BY number LIMIT 1
     ) first
     WHERE first.started_at > coalesce(success.last_delivered_at, '-infinity')
     ORDER BY since LIMIT 1
   ) failing ON failing.since <= now() - $after_seconds * interval '1 s'
   WHERE failing.since IS NOT NULL OR unsent.nr = $most
   ORDER BY unsent.subscription_id`,
);

/** @param after where the round before ended; undefined: at the last one */
export async function readFailing(
  query: Query,
  afterSeconds: number,
  after: string | undefined,
): Promise<Part<FailingSubscription>> {
  const rows = await query<{
    subscription_id: string;
    at_end: boolean;
    count: number;
    since: Date | null;
    reason: string | null;
  }>(findFailing, {
    after: after ?? lowestId,
    after_seconds: afterSeconds,
    most: mostTriedAt,
    most_looked_at: mostLookedAt,
    most_counted: mostCounted,
  });
  const found = rows.flatMap(({ subscription_id: subscriptionId, count, since, reason }) =>
    since ? { subscriptionId, count, since, reason } : [],
  );
  return { found, after, upTo: rows.find(({ at_end: isAtEnd }) => isAtEnd)?.subscription_id };
}

const someOf = (kind: 'waiting' | 'queued', time: string) =>
  `(SELECT FROM delivery WHERE ${unfinishedSince(kind)} AND ${time} <= now() ${byTimeOf(kind)} LIMIT $most)`;

/** By the indexes `delivery_due` and `delivery_queued`. */
export const countDue = statement(
  'alert-count-due',
  `SELECT (SELECT count(*) FROM ${someOf('waiting', 'next_at')} AS d)::int
     + (SELECT count(*) FROM ${someOf('queued', 'queued_at')} AS q)::int AS count`,
);

/** @param most of each of the two kinds, those that are due and those in the queue, no more are counted; 0: none is */
export async function readDue(query: Query, unfinished: OldestUnfinished, most: number): Promise<Due> {
  const waiting = await unfinished.find(query, 'waiting');
  const queued = await unfinished.find(query, 'queued');
  const due: OldestDue[] = [];
  if (waiting && waiting.seconds >= 0) due.push({ ...keyAndTime(waiting), state: 'waiting' });
  if (queued) due.push({ ...keyAndTime(queued), state: 'queued' });
  const [oldest] = due.sort((one, other) => one.since.getTime() - other.since.getTime());
  if (!oldest || most === 0) return { oldest, count: 0 };
  const from = { ...fromOldest('waiting', waiting), ...fromOldest('queued', queued) };
  const [row] = await query<{ count: number }>(countDue, { ...from, most });
  return { oldest, count: row!.count };
}

const keyAndTime = ({ notificationId, subscriptionId, since }: Oldest) => ({ notificationId, subscriptionId, since });

/** The table is as small as the number of endpoints in trouble. */
const findOpenFor = statement(
  'alert-endpoints-open',
  `SELECT address, opened_at, reason, failures FROM endpoint
   WHERE opened_at <= now() - $after_seconds * interval '1 s' ORDER BY opened_at, address LIMIT $most`,
);

/** Those that have been open longest. */
export async function readOpenFor(query: Query, afterSeconds: number): Promise<OpenFor[]> {
  const rows = await query<{ address: string; opened_at: Date; reason: string; failures: number }>(findOpenFor, {
    after_seconds: afterSeconds,
    // One more tells that there are more.
    most: mostSubjects + 1,
  });
  return rows.map(({ opened_at: openedAt, ...row }) => ({ ...row, openedAt }));
}

const findRoles = statement('alert-roles', `SELECT DISTINCT unnest(roles) AS role FROM process WHERE ${aliveNow}`);

export async function readRoles(query: Query): Promise<ReadonlySet<string>> {
  return new Set((await query<{ role: string }>(findRoles)).map(({ role }) => role));
}
