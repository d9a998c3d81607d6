import type { Query } from '../infra/postgres/postgres.js';
import { keyOf, type DeliveryKey, type KeyRow } from './delivery.js';
import { outOfLine } from './line-up.js';
import { perDay } from './per-day.js';

/** For the operator who finds a delivery cancelled. */
export const bodyErased = 'the body of its notification was erased';

export const unfinished = "state IN ('queued', 'waiting', 'held', 'sending')";

/*
 * With the text of a notification goes what receivers answered to it: they may have repeated it. Of an attempt's error the status
 * stays, of its details the address that was called.
 */
export const eraseItems = perDay(
  'erase-bodies',
  (of) => `
    WITH answers AS (
      UPDATE ${of('attempt')} a SET
        error = CASE WHEN a.error IS NOT NULL THEN 'HTTP ' || a.status END,
        details = json_build_object('address', a.details -> 'address', 'headers', NULL, 'body', NULL)
      WHERE a.notification_id = ANY ($ids::uuid[]) AND a.status IS NOT NULL AND (a.error IS NOT NULL OR a.details IS NOT NULL)
    ),
    errors AS (
      UPDATE ${of('delivery')} d SET last_error = 'HTTP ' || d.last_status
      WHERE d.notification_id = ANY ($ids::uuid[]) AND d.last_status IS NOT NULL AND d.last_error LIKE 'HTTP %'
    ),
    texts AS MATERIALIZED (
      SELECT id, octet_length(body) AS bytes FROM ${of('notification')}
      WHERE id = ANY ($ids::uuid[]) AND body IS NOT NULL FOR UPDATE
    ),
    erased AS (
      UPDATE ${of('notification')} n SET body = NULL FROM texts WHERE n.id = ANY (ARRAY[texts.id]) RETURNING texts.bytes
    )
    SELECT count(*)::int AS bodies, coalesce(sum(bytes), 0)::float8 AS bytes FROM erased`,
);

export interface Erased {
  bodies: number;
  /** Length of the texts that were erased. */
  bytes: number;
}

/** Erases the texts of notifications of one day, in the transaction of `query`. */
export async function eraseBodies(query: Query, day: number, ids: string[]): Promise<Erased> {
  const [erased] = await query<Erased>(eraseItems(day), { ids });
  return erased!;
}

export const eraseKeyItems = perDay(
  'erase-request-keys',
  (of) =>
    `UPDATE ${of('notification')} SET request_key = NULL WHERE id = ANY ($ids::uuid[]) AND request_key IS NOT NULL`,
);

/** Their publishers chose them: they may be personal too. */
export async function eraseKeys(query: Query, day: number, ids: string[]): Promise<void> {
  await query(eraseKeyItems(day), { ids });
}

/*
 * For an operator who has it erased: what is not sent yet is not sent any more. With the last of it those that ended just now are
 * reported too: their message may still be on its way to a worker. With each step they would be read again and again, as
 * those of the steps before are among them.
 */
export const cancelItems = perDay(
  'cancel-erased',
  (of) => `
    WITH found AS MATERIALIZED (
      SELECT notification_id, subscription_id, state, next_at, replays FROM ${of('delivery')}
      WHERE notification_id = ANY ($ids::uuid[]) AND ${unfinished}
      LIMIT $limit FOR UPDATE
    ),
    cancelled AS (
      UPDATE ${of('delivery')} d SET state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL,
        generation = d.generation + 1, ended_at = now(), last_error = '${bodyErased}'
      FROM found
      WHERE d.notification_id = ANY (ARRAY[found.notification_id]) AND d.subscription_id = found.subscription_id
      RETURNING d.subscription_id, d.object_key, d.turn_nr
    ),
    ${outOfLine('cancelled')}
    SELECT notification_id, subscription_id, replays, true AS is_cancelled, state = 'queued' AS was_queued,
      CASE WHEN state = 'sending' THEN next_at END AS call_ends_at
    FROM found
    UNION ALL
    SELECT notification_id, subscription_id, replays, false, true, NULL FROM ${of('delivery')}
    WHERE notification_id = ANY ($ids::uuid[]) AND state IN ('cancelled', 'expired')
      AND ended_at > now() - interval '10 minutes' AND (SELECT count(*) FROM found) < $limit`,
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

/** Ends at most `limit` unfinished deliveries of notifications of one day, in the transaction of `query`. */
export async function cancelDeliveriesOf(
  query: Query,
  day: number,
  ids: string[],
  limit: number,
): Promise<CancelledByErasure[]> {
  interface CancelledRow extends KeyRow {
    replays: number;
    is_cancelled: boolean;
    was_queued: boolean;
    call_ends_at: Date | null;
  }
  const rows = await query<CancelledRow>(cancelItems(day), { ids, limit });
  return rows.map((row) => ({
    ...keyOf(row),
    replays: row.replays,
    isCancelled: row.is_cancelled,
    wasQueued: row.was_queued,
    callEndsAt: row.call_ends_at,
  }));
}
