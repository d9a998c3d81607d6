import type { Query } from '../infra/postgres/postgres.js';
import type { Values } from '../infra/postgres/statement.js';
import { keyOf, sameDelivery, type DeliveryKey, type KeyRow } from './delivery.js';
import { unfinished } from './erase-bodies.js';
import { outOfLine } from './line-up.js';
import { perDay } from './per-day.js';
import { nextDeliveries, type ReachedDelivery } from './walk-deliveries.js';

/** For the operator who finds a delivery cancelled. */
export const bodyErased = 'the body of its notification was erased';

/*
 * For an operator who has it erased: what is not sent yet is not sent any more. Those that ended just now are reported
 * too, also where that was while this waited for their rows: their message may still be on its way to a worker.
 */
export const cancelItems = perDay(
  'cancel-erased',
  (of) => `
    WITH ${nextDeliveries(of('delivery'))},
    found AS MATERIALIZED (
      SELECT d.notification_id, d.subscription_id, d.state, d.next_at, d.replays
      FROM page JOIN ${of('delivery')} d ON ${sameDelivery('page')}
      WHERE page.${unfinished} OR page.state IN ('cancelled', 'expired') AND page.ended_at > now() - interval '10 minutes'
      ORDER BY page.notification_id, page.subscription_id FOR UPDATE OF d
    ),
    cancelled AS (
      UPDATE ${of('delivery')} d SET state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL,
        generation = d.generation + 1, ended_at = now(), last_error = '${bodyErased}'
      FROM found WHERE ${sameDelivery('found')} AND found.${unfinished}
      RETURNING d.subscription_id, d.object_key, d.turn_nr
    ),
    ${outOfLine('cancelled')}
    SELECT reached.*, each.* FROM reached LEFT JOIN (
      SELECT notification_id, subscription_id, replays, ${unfinished} AS is_cancelled, state NOT IN ('waiting', 'held', 'sending') AS was_queued,
        CASE WHEN state = 'sending' THEN next_at END AS call_ends_at
      FROM found WHERE ${unfinished} OR state IN ('cancelled', 'expired')
    ) AS each ON true`,
);

export interface CancelledByErasure extends DeliveryKey {
  replays: number;
  /** False: it had ended before. */
  isCancelled: boolean;
  /** A worker may have it. */
  wasQueued: boolean;
  /** At most once, and claimed: when its call has ended for certain. */
  callEndsAt: Date | null;
}

/**
 * Ends the next unfinished deliveries of notifications of one day, in the transaction of `query`.
 * @param values as `walkDeliveries` gives them
 */
export async function cancelNext(
  query: Query,
  day: number,
  values: Values,
): Promise<{ reached: ReachedDelivery; found: CancelledByErasure[] }> {
  interface CancelledRow extends KeyRow, ReachedDelivery {
    replays: number;
    is_cancelled: boolean;
    was_queued: boolean;
    call_ends_at: Date | null;
  }
  const rows = await query<CancelledRow>(cancelItems(day), values);
  const found = rows
    .filter((row) => row.notification_id !== null)
    .map((row) => ({
      ...keyOf(row),
      replays: row.replays,
      isCancelled: row.is_cancelled,
      wasQueued: row.was_queued,
      callEndsAt: row.call_ends_at,
    }));
  return { reached: rows[0]!, found };
}
