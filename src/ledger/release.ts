import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { handedOutColumns, readHandedOut, withText, type HandedOutRow, type HandedOutTogether } from './handed-out.js';

/**
 * Releases the oldest deliveries that are held for a subscription, under a new generation. Those that wait for their
 * turn (`order`) are not among them. The released ones that are not settled are counted by an index of their own.
 */
export const releaseItems = statement(
  'release',
  `
    WITH outstanding AS MATERIALIZED (
      SELECT count(*)::int AS outstanding FROM (
        SELECT FROM delivery
        WHERE subscription_id = $subscription AND state = 'queued' AND held_for IS NOT NULL LIMIT $release_window
      ) AS counted
    ),
    oldest AS MATERIALIZED (
      SELECT notification_id, subscription_id FROM delivery
      WHERE subscription_id = $subscription AND state = 'held' AND held_for <> 'order'
      ORDER BY notification_id
      LIMIT GREATEST(0, LEAST($limit, $release_window - (SELECT outstanding FROM outstanding))) FOR UPDATE SKIP LOCKED
    ),
    released AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM oldest
      WHERE ${sameDelivery('oldest')}
      RETURNING ${handedOutColumns}
    )
    ${withText('(SELECT * FROM outstanding LEFT JOIN released ON true)')}
    ORDER BY h.notification_id`,
);

export interface Released extends HandedOutTogether {
  /** Released before, and not yet settled. */
  outstanding: number;
}

/**
 * @param window of the subscription: how many may be released and not yet settled
 * @param limit how many this call may release
 * @param process whose memory the queue is; null: a broker's
 */
export async function release(
  postgres: Postgres,
  { subscriptionId, window, limit }: { subscriptionId: string; window: number; limit: number },
  process: string | null,
): Promise<Released> {
  const rows = await postgres.query<{ outstanding: number } & (HandedOutRow | { notification_id: null })>(
    releaseItems,
    { subscription: subscriptionId, release_window: window, limit, process },
  );
  return {
    ...readHandedOut(rows.filter((row) => row.notification_id !== null)),
    outstanding: rows[0]!.outstanding,
  };
}
