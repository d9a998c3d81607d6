import { errorClassInSql, type ErrorClass } from '../deliveries/error-class.js';
import { isDead } from '../ledger/delivery.js';
import { perDay } from '../ledger/per-day.js';
import type { DeadState } from '../operational-events/operational-events.service.js';

/*
 * Dead letters are grouped day by day, through the index that has them by subscription and state. First which
 * subscriptions there are, one step of the index for each; then what those died of, a limited number of rows at a time.
 */

export interface HeadRow {
  subscription_id: string;
  state: DeadState;
}

/**
 * The subscriptions that have dead letters of a day, and in which states; at most `$most`. Each costs one look into the
 * index.
 */
export const findHeads = perDay(
  'dead-letter-heads',
  (of) => `
  WITH RECURSIVE head AS (
    (SELECT subscription_id, state FROM ${of('delivery')} WHERE ${isDead()} ORDER BY subscription_id, state LIMIT 1)
    UNION ALL
    SELECT next.* FROM head CROSS JOIN LATERAL (
      SELECT subscription_id, state FROM ${of('delivery')}
      WHERE ${isDead()} AND (subscription_id, state) > (head.subscription_id, head.state)
      ORDER BY subscription_id, state LIMIT 1
    ) AS next
  )
  SELECT * FROM head LIMIT $most`,
);

export interface WalkedRow {
  /** Counts from 1: of the subscriptions and states that were given. */
  head: number;
  /** Rows that were looked at, and the oldest of them; null: there was none. */
  walked: number;
  last_notification: string | null;
  /** Null: of these, none is sought; all that follows is null too. */
  error_class: ErrorClass | null;
  count: number;
  oldest: string;
  newest: string;
  last_ended_at: Date;
  last_status: number | null;
  last_error: string | null;
}

/**
 * Of each subscription and state that is given, the next `$each` rows, from the newest to the oldest, by what they died
 * of.
 */
const walk = (name: string, ofChannels: boolean) =>
  perDay(
    name,
    (of) => `
  SELECT head.nr::int AS head, found.*
  FROM unnest($subscriptions::uuid[], $states::delivery_state[], $befores::uuid[]) WITH ORDINALITY
    AS head (subscription_id, state, before, nr)
  CROSS JOIN LATERAL (
    WITH walked AS MATERIALIZED (
      SELECT row_number() OVER () AS nr, r.*, ${errorClassInSql} AS error_class FROM (
        SELECT notification_id, state, last_status, last_error, ended_at, replay_id FROM ${of('delivery')}
        WHERE subscription_id = head.subscription_id AND state = head.state AND ${isDead()}
          AND notification_id >= $from AND notification_id < head.before
        ORDER BY notification_id DESC LIMIT $each
      ) AS r
    ),
    sought AS (
      SELECT error_class, count(*)::int AS count, min(nr) AS newest, max(nr) AS oldest, max(ended_at) AS last_ended_at FROM walked
      WHERE ($replay::uuid IS NULL OR replay_id = $replay)
        AND ${ofChannels ? `(SELECT channel FROM ${of('notification')} WHERE id = notification_id OFFSET 0) = $channel` : 'true'}
      GROUP BY error_class
    )
    SELECT reached.*, sought.error_class, sought.count, oldest.notification_id AS oldest, newest.notification_id AS newest,
      sought.last_ended_at, newest.last_status, newest.last_error
    FROM (
      SELECT count(*)::int AS walked, (SELECT notification_id FROM walked ORDER BY nr DESC LIMIT 1) AS last_notification FROM walked
    ) AS reached
    LEFT JOIN sought ON true
    LEFT JOIN walked AS oldest ON oldest.nr = sought.oldest
    LEFT JOIN walked AS newest ON newest.nr = sought.newest
  ) AS found`,
  );

export const walkHeads = walk('dead-letter-walk', false);
/** Each row brings its notification along, which is most of the work. */
export const walkHeadsOfChannel = walk('dead-letter-walk-of-channel', true);
