import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { isDead } from './delivery.js';
import { dayMs, lowestIdAt, timeOfId } from './partitions.js';

/** Of each subscription, no more are counted. */
export const mostCounted = 1000;
/** Failures of notifications that were accepted before that are not looked for. */
export const failuresOfDays = 7;
/** Of the newest that wait, so many are looked at for one that has failed: the others wait for their time. */
const waitingLookedAt = 20;

/** How it stands with one subscription. */
export interface Situation {
  subscriptionId: string;
  /** Held deliveries, counted up to `mostCounted`. */
  held: number;
  /** When the notification of the oldest of them was accepted; null: nothing is held. */
  oldestHeldAt: Date | null;
  /** Waiting for another attempt, or their time, counted up to `mostCounted`. */
  waiting: number;
  /** Dead letters, counted up to `mostCounted`, of `failuresOfDays`. */
  dead: number;
  /** Of the newest notification with a delivery that failed, for good or so far. */
  lastFailure: { notificationId: string; acceptedAt: Date; error: string | null; status: number | null } | null;
}

const upTo = (condition: string): string =>
  `(SELECT count(*) FROM (
     SELECT FROM delivery d WHERE d.subscription_id = s.id AND ${condition} LIMIT $most
   ) AS c)::int`;

const newest = (state: string, rows: number): string =>
  `(SELECT notification_id, last_error, last_status, failures FROM delivery d
    WHERE d.subscription_id = s.id AND d.state = '${state}' AND d.notification_id >= $since::uuid
      AND ${state === 'waiting' ? "d.state BETWEEN 'waiting' AND 'held'" : isDead('d')}
    ORDER BY d.notification_id DESC LIMIT ${rows})`;

/*
 * The conditions are those of the indexes by subscription. Held ones are only counted for subscriptions that are known
 * to hold something: the others would be looked for in every day.
 */
export const situationsItems = statement(
  'read-situations',
  `SELECT s.id, held.count AS held, held.oldest, waiting.count AS waiting,
     ${upTo(`${isDead('d')} AND d.notification_id >= $since::uuid`)} AS dead,
     failure.notification_id AS failed_id, failure.last_error, failure.last_status
   FROM unnest($subscriptions::uuid[]) AS s (id)
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS count, min(notification_id::text) AS oldest FROM (
       SELECT notification_id FROM delivery d
       WHERE d.subscription_id = s.id AND d.state = 'held' AND d.held_for <> 'order'
         AND EXISTS (SELECT FROM held_subscription h WHERE h.subscription_id = s.id)
       ORDER BY notification_id LIMIT $most
     ) AS counted
   ) AS held
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS count FROM (
       SELECT FROM delivery d
       WHERE d.subscription_id = s.id AND d.state = 'waiting' AND d.state BETWEEN 'waiting' AND 'held'
         AND d.notification_id >= $since::uuid
       LIMIT $most
     ) AS counted
   ) AS waiting
   LEFT JOIN LATERAL (
     SELECT * FROM (
       SELECT * FROM ${newest('failed', 1)} AS f UNION ALL SELECT * FROM ${newest('expired', 1)} AS e
       UNION ALL SELECT * FROM ${newest('unknown', 1)} AS u
       UNION ALL SELECT * FROM ${newest('waiting', waitingLookedAt)} AS w WHERE failures > 0
     ) AS any_of_them
     ORDER BY notification_id DESC LIMIT 1
   ) AS failure ON true`,
);

interface SituationRow {
  id: string;
  held: number;
  oldest: string | null;
  waiting: number;
  dead: number;
  failed_id: string | null;
  last_error: string | null;
  last_status: number | null;
}

/** @param nowMs milliseconds since 1970 */
export async function readSituations(
  postgres: Postgres,
  subscriptionIds: readonly string[],
  nowMs: number,
): Promise<Situation[]> {
  const since = lowestIdAt(Math.max(0, Math.floor(nowMs) - failuresOfDays * dayMs));
  const values = { subscriptions: subscriptionIds, since, most: mostCounted };
  const rows = await postgres.queryAside<SituationRow>(situationsItems, values);
  return rows.map((row) => ({
    subscriptionId: row.id,
    held: row.held,
    oldestHeldAt: row.oldest === null ? null : new Date(timeOfId(row.oldest)),
    waiting: row.waiting,
    dead: row.dead,
    lastFailure: row.failed_id === null ? null : failureOf(row, row.failed_id),
  }));
}

const failureOf = ({ last_error: error, last_status: status }: SituationRow, notificationId: string) => ({
  notificationId,
  acceptedAt: new Date(timeOfId(notificationId)),
  error,
  status,
});
