import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { errorWithoutAnswer } from '../ledger/erase-bodies.js';
import { lowestId } from '../ledger/partitions.js';
import { mostCounted } from './alert-rules.js';
import { mostSubjects, type Part } from './look.js';

export interface NotMadeFor {
  subscriptionId: string;
  /** Deliveries that no call could be made for, at most `mostCounted`. */
  count: number;
  oldestNotificationId: string;
  /** Of the oldest. */
  reason: string;
}

/**
 * They wait for their first call, or for its outcome, and one could not be made: nothing else gives such a one an
 * error. Those that were sent again may have theirs from before, and those that were held for too long have one, and
 * expire.
 */
const isNotMade = `last_error IS NOT NULL AND attempts = 0 AND replays = 0 AND held_for IS NULL
  AND state IN ('queued', 'waiting', 'sending')`;

const order = 'subscription_id, notification_id';

/**
 * The subscriptions of deliveries that no call could be made for, in the order of their ids: from each to the next by
 * one look into the index `delivery_not_made`, which has no others. Of many, each round sees some.
 */
export const findNotMade = statement(
  'alert-calls-not-made',
  `WITH RECURSIVE not_made AS (
     (SELECT subscription_id, 1 AS nr FROM delivery WHERE ${isNotMade} AND subscription_id > $after
      ORDER BY ${order} LIMIT 1)
     UNION ALL
     SELECT next.subscription_id, not_made.nr + 1 FROM not_made CROSS JOIN LATERAL (
       SELECT subscription_id FROM delivery WHERE ${isNotMade} AND subscription_id > not_made.subscription_id
       ORDER BY ${order} LIMIT 1
     ) next
     WHERE not_made.nr < $most
   )
   SELECT not_made.subscription_id AS "subscriptionId", counted.*
   FROM not_made CROSS JOIN LATERAL (
     SELECT count(*)::int AS count, min(notification_id::text) AS "oldestNotificationId",
       (array_agg(reason ORDER BY notification_id))[1] AS reason
     FROM (
       SELECT notification_id, ${errorWithoutAnswer('d')} AS reason FROM delivery d
       WHERE ${isNotMade} AND subscription_id = not_made.subscription_id
       ORDER BY ${order} LIMIT $most_counted
     ) first
   ) counted
   ORDER BY not_made.subscription_id`,
);

/** @param after where the round before ended; undefined: at the last one */
export async function readNotMade(query: Query, after: string | undefined): Promise<Part<NotMadeFor>> {
  const found = await query<NotMadeFor>(findNotMade, {
    after: after ?? lowestId,
    most: mostSubjects,
    most_counted: mostCounted,
  });
  return { found, after, upTo: found.length < mostSubjects ? undefined : found.at(-1)!.subscriptionId };
}
