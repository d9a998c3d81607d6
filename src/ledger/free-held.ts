import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { lowestId, lowestIdAt } from './partitions.js';

/*
 * Held deliveries that are too old to go on waiting. They become due, and the worker that gets them ends them. It asks
 * the seal first: the ledger may not know that one was sent before.
 */

export const freeExpiredItems = statement(
  'free-held-expired',
  `WITH freed AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE state = 'held' AND held_for <> 'order' AND expires_at <= now() LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET state = 'waiting', next_at = now()
   FROM freed
   WHERE ${sameDelivery('freed')}`,
);

/**
 * Those that have become older than their channel allows are due at once; those in line, when it is their turn.
 * @returns how many
 */
export async function freeHeldExpired(postgres: Postgres, limit: number): Promise<number> {
  return postgres.affected(freeExpiredItems, { limit });
}

export const freeTooLongItems = statement(
  'free-held-too-long',
  `WITH looked_at AS MATERIALIZED (
     SELECT notification_id FROM delivery
     WHERE subscription_id = $subscription AND state = 'held' AND held_for <> 'order'
       AND notification_id > $after AND notification_id < $before
       AND NOT EXISTS (
         SELECT FROM held_subscription
         WHERE subscription_id = $subscription AND resumed_at >= to_timestamp($before_ms::float8 / 1000)
       )
     ORDER BY notification_id LIMIT $limit
   ),
   last AS MATERIALIZED (SELECT notification_id FROM looked_at ORDER BY notification_id DESC LIMIT 1),
   -- Only these are locked: to lock one writes it.
   too_old AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE subscription_id = $subscription AND state = 'held' AND held_for <> 'order'
       AND notification_id > $after AND notification_id <= (SELECT notification_id FROM last)
       AND held_since < to_timestamp($before_ms::float8 / 1000)
     ORDER BY notification_id LIMIT $limit FOR UPDATE SKIP LOCKED
   ),
   freed AS (
     UPDATE delivery d SET state = 'waiting', next_at = now(), expires_at = now(), last_error = $reason
     FROM too_old
     WHERE ${sameDelivery('too_old')}
     RETURNING 1
   )
   SELECT (SELECT count(*) FROM freed)::int AS freed, (SELECT count(*) FROM looked_at)::int AS "lookedAt",
     (SELECT notification_id FROM last) AS last`,
);

export interface HeldTooLong {
  subscriptionId: string;
  /** Milliseconds since 1970, by Postgres' clock. */
  heldBefore: number;
  /** For the operator who finds them expired. */
  reason: string;
}

/**
 * Those of a subscription that have been held since before that time, without a call, are no longer worth sending, and
 * due at once; none where the subscription was paused since then, or had another address, which kept them from being
 * tried. A delivery is not accepted after it was held, so by its id the index leads to them. It also leads to those
 * that were held later than they were accepted: by a replay there may be any number of these, so a call looks at so
 * many and no more.
 * @param after looks at those after that notification; undefined: at the first
 * @param limit of deliveries that are looked at
 * @returns how many are due now, and the notification to go on after; undefined: there are no more
 */
export async function freeHeldTooLong(
  postgres: Postgres,
  { subscriptionId, heldBefore, reason }: HeldTooLong,
  after: string | undefined,
  limit: number,
): Promise<{ freed: number; next: string | undefined }> {
  const [row] = await postgres.query<{ freed: number; lookedAt: number; last: string | null }>(freeTooLongItems, {
    subscription: subscriptionId,
    after: after ?? lowestId,
    before: lowestIdAt(Math.max(0, Math.floor(heldBefore))),
    before_ms: heldBefore,
    reason,
    limit,
  });
  const { freed, lookedAt, last } = row!;
  return { freed, next: lookedAt === limit ? last! : undefined };
}
