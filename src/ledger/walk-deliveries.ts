import type { Values } from '../infra/postgres/statement.js';
import { lowestId } from './partitions.js';

/*
 * How the deliveries of some notifications are gone through: in the order of their keys, and as many in one statement
 * as have a bounded number of rows with their attempts. A notification may have one delivery or a hundred thousand: a
 * statement about so many notifications would sometimes pass its time limit, be undone, and fare no better the next
 * time.
 */

/** Deliveries and attempts that one statement looks at. */
export const rowsTogether = 5000;

/**
 * Common table expressions: `page`, the next deliveries of the notifications `$ids`, and `reached`, how far that comes.
 */
export const nextDeliveries = (delivery: string): string => `
    ahead AS MATERIALIZED (
      SELECT notification_id, subscription_id, state, ended_at, attempts FROM ${delivery}
      WHERE notification_id = ANY ($ids::uuid[])
        AND (notification_id, subscription_id) > ($after_notification::uuid, $after_subscription::uuid)
      ORDER BY notification_id, subscription_id LIMIT $limit::int
    ),
    page AS MATERIALIZED (
      SELECT notification_id, subscription_id, state, ended_at FROM (
        SELECT *, sum(1 + attempts) OVER (ORDER BY notification_id, subscription_id ROWS UNBOUNDED PRECEDING) - attempts AS nr
        FROM ahead
      ) AS counted WHERE nr <= $limit::int
    ),
    reached AS MATERIALIZED (
      SELECT (SELECT count(*) FROM ahead) = $limit::int OR (SELECT count(*) FROM page) < (SELECT count(*) FROM ahead) AS is_more,
        last.notification_id AS last_notification, last.subscription_id AS last_subscription
      FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
        SELECT * FROM page ORDER BY notification_id DESC, subscription_id DESC LIMIT 1
      ) AS last ON true
    )`;

/** As `reached` answers it; the last key is null where there was none. */
export interface ReachedDelivery {
  is_more: boolean;
  last_notification: string | null;
  last_subscription: string | null;
}

export interface WalkOptions {
  stopping: AbortSignal;
  /** Between two statements. */
  rest?: () => Promise<unknown>;
  /** Rows that one statement looks at. */
  limit?: number;
  /** Notifications whose other deliveries need not be looked at; may grow on the way. */
  settled?: ReadonlySet<string>;
}

/**
 * @param ids of notifications of one day
 * @param look runs a statement with `nextDeliveries`
 * @returns false: it was stopped before the end
 */
export async function walkDeliveries(
  ids: readonly string[],
  look: (values: Values) => Promise<ReachedDelivery>,
  { stopping, rest, limit = rowsTogether, settled }: WalkOptions,
): Promise<boolean> {
  let ahead = [...ids];
  let [notification, subscription]: [string, string] = [lowestId, lowestId];
  while (ahead.length > 0) {
    if (stopping.aborted) return false;
    const reached = await look({
      ids: ahead,
      after_notification: notification,
      after_subscription: subscription,
      limit,
    });
    if (!reached.is_more) return true;
    [notification, subscription] = [reached.last_notification!, reached.last_subscription!];
    ahead = ahead.filter((id) => id >= notification && !settled?.has(id));
    await rest?.();
  }
  return true;
}
