import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { HeldReason } from './delivery.js';
import { timeOfId } from './partitions.js';

/** The held deliveries of a subscription: its oldest, as many as were counted. */
export interface Held {
  count: number;
  byReason: Partial<Record<HeldReason, number>>;
  /** When the notification of the oldest one was accepted; null: nothing is held. */
  oldestAt: Date | null;
  /** Its held deliveries are being dropped. */
  isDropping: boolean;
}

export const readHeldItems = statement(
  'read-held',
  `SELECT held_for, count(*)::int AS count, min(notification_id::text) AS oldest,
     EXISTS (SELECT FROM held_drop WHERE subscription_id = $subscription) AS is_dropping
   FROM (
     SELECT held_for, notification_id FROM delivery WHERE subscription_id = $subscription AND state = 'held'
     ORDER BY notification_id LIMIT $limit
   ) AS counted
   GROUP BY GROUPING SETS ((), (held_for))`,
);

/** @param limit how many are counted */
export async function readHeld(postgres: Postgres, subscriptionId: string, limit: number): Promise<Held> {
  const rows = await postgres.query<{
    /** Null: all reasons together. */
    held_for: HeldReason | null;
    count: number;
    oldest: string | null;
    is_dropping: boolean;
  }>(readHeldItems, { subscription: subscriptionId, limit });
  const all = rows.find((row) => row.held_for === null)!;
  return {
    count: all.count,
    byReason: Object.fromEntries(rows.flatMap((row) => (row.held_for === null ? [] : [[row.held_for, row.count]]))),
    oldestAt: all.oldest === null ? null : new Date(timeOfId(all.oldest)),
    isDropping: all.is_dropping,
  };
}
