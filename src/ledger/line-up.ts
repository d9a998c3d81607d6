import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';

/*
 * Order by object (docs/decisions/0028). Of the deliveries of a subscription that are about one object, one has the
 * turn: a row of the table `turn`. The others are held, in line by `turn_nr` (table `in_line`), until the turn is
 * passed on (pass-turn.ts). A delivery lines up when it is accepted or, scheduled or retried by an operator, when it is
 * due.
 */

/** The subscriptions that keep the order of a notification, and the object by which they do. */
export interface InOrder {
  /** UUID that stands for the object. */
  objectKey: string;
  /** The subscriptions that keep order. */
  subscriptionIds: ReadonlySet<string>;
}

/** Of the rows `t` of `turn`, the one of the object of a row of `other`, by its primary key: see `sameDelivery`. */
export const sameTurn = (other: string): string =>
  `t.subscription_id = ANY (ARRAY[${other}.subscription_id]) AND t.object_key = ${other}.object_key`;

/** Of the rows `l` of `in_line`, the one of a row of `other`, by its primary key. */
export const samePlace = (other: string): string =>
  `l.subscription_id = ANY (ARRAY[${other}.subscription_id]) AND l.object_key = ${other}.object_key AND l.turn_nr = ${other}.turn_nr`;

/**
 * A common table expression: the places in line of deliveries that have ended (subscription_id, object_key, turn_nr)
 * are given up. A long line would otherwise be passed through one place at a time.
 */
export const outOfLine = (ended: string): string => `
  out_of_line AS (
    DELETE FROM in_line l USING (SELECT * FROM ${ended} WHERE turn_nr > 0) AS place WHERE ${samePlace('place')}
  )`;

/**
 * Common table expressions: of the deliveries in `source` (notification_id, subscription_id, object_key, nr), those in
 * `behind` find the turn of their object taken. The first of each object takes it, or locks the row of whoever has it
 * and counts itself there: so the turn is not given up behind the back of one that is being written. In the order of
 * the key, so that two batches wait for each other instead of deadlocking.
 */
export const liningUp = (source: string): string => `
  line AS MATERIALIZED (
    SELECT notification_id, subscription_id, object_key,
      row_number() OVER (PARTITION BY subscription_id, object_key ORDER BY nr) AS place,
      count(*) OVER (PARTITION BY subscription_id, object_key) AS places
    FROM ${source}
  ),
  turns AS (
    INSERT INTO turn AS t (subscription_id, object_key, notification_id, lined_up)
    SELECT subscription_id, object_key, notification_id, places - 1 FROM line
    WHERE place = 1 ORDER BY subscription_id, object_key
    ON CONFLICT (subscription_id, object_key) DO UPDATE SET lined_up = t.lined_up + 1
    RETURNING t.notification_id, t.subscription_id
  ),
  behind AS MATERIALIZED (
    SELECT notification_id, subscription_id FROM line
    WHERE (notification_id, subscription_id) NOT IN (SELECT notification_id, subscription_id FROM turns)
  )`;

/**
 * Whether the subscription of a row of `other` keeps order, or is not there. One that has stopped to keep it may still
 * have deliveries with an object, which were scheduled, or died, while it did: nobody comes to free those from a line
 * (end-of-order.ts). They go with `turn_nr` 0, and without a turn.
 */
export const keepsOrder = (other: string): string =>
  `(SELECT ordering FROM subscription WHERE id = ${other}.subscription_id) IS DISTINCT FROM 'none'`;

/** `turn_nr` of one that ended with the turn, was sent again by an operator, and has not lined up since. */
export const mayHaveTurn = -1;

/**
 * Places in line rise with time: a publisher that was told of one before it published the next gets a higher place for
 * that.
 */
export const nextPlace = "nextval('turn_nr')";

const notInLine = `state = 'waiting' AND object_key IS NOT NULL AND turn_nr IS DISTINCT FROM 0
      AND next_at >= to_timestamp($since_ms::float8 / 1000)`;

/*
 * One dispatcher at a time: of two that take batches beside each other, the one with the later deliveries may be the
 * first to give out places. Any number may be due at the same moment, a publisher's time for all that it schedules;
 * then they go in the order of their ids, which is that of their acceptance. `last` bounds what is sorted for that, to
 * a batch and what is due at the same moment as the last of it: no index has both.
 *
 * One that gets the turn is due from now on: its moment may be one that a hand-out has looked at already, and is past.
 */
export const lineUpItems = statement(
  'line-up',
  `
  WITH held AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(${advisoryLocks.liningUp}) AS is_mine),
  last AS MATERIALIZED (
    SELECT next_at FROM delivery
    WHERE (SELECT is_mine FROM held) AND ${notInLine} AND next_at <= now()
    ORDER BY next_at OFFSET $limit::int - 1 LIMIT 1
  ),
  due AS MATERIALIZED (
    SELECT notification_id, subscription_id, object_key, next_at FROM delivery
    WHERE (SELECT is_mine FROM held) AND ${notInLine} AND next_at <= coalesce((SELECT next_at FROM last), now())
    ORDER BY next_at, notification_id LIMIT $limit FOR UPDATE SKIP LOCKED
  ),
  numbered AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY next_at, notification_id) AS nr FROM due),
  ${liningUp(`(SELECT * FROM numbered WHERE ${keepsOrder('numbered')}) AS lining_up`)},
  placed AS MATERIALIZED (
    SELECT notification_id, subscription_id, object_key, next_at, CASE WHEN is_behind THEN ${nextPlace} ELSE 0 END AS turn_nr
    FROM (
      SELECT *, (notification_id, subscription_id) IN (SELECT notification_id, subscription_id FROM behind) AS is_behind
      FROM numbered ORDER BY nr
    ) AS ordered
  ),
  in_line AS (
    INSERT INTO in_line (subscription_id, object_key, turn_nr, notification_id)
    SELECT subscription_id, object_key, turn_nr, notification_id FROM placed WHERE turn_nr > 0
  ),
  lined_up AS (
    UPDATE delivery d SET
      turn_nr = placed.turn_nr,
      state = CASE WHEN placed.turn_nr = 0 THEN 'waiting' ELSE 'held' END::delivery_state,
      held_for = CASE WHEN placed.turn_nr = 0 THEN nullif(d.held_for, 'order') ELSE 'order' END,
      held_since = CASE WHEN placed.turn_nr = 0 THEN d.held_since ELSE now() END,
      next_at = CASE WHEN placed.turn_nr = 0 THEN now() END
    FROM placed WHERE ${sameDelivery('placed')}
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM lined_up)::int AS count, (SELECT is_mine FROM held) AS is_mine,
    (SELECT floor(extract(epoch FROM next_at) * 1000) FROM last)::float8 AS last_ms`,
);

export const findNotInLine = statement(
  'any-not-in-line',
  `SELECT EXISTS (SELECT FROM delivery WHERE ${notInLine} AND next_at <= now()) AS yes`,
);

/**
 * Whether anything that is due is to line up. Far cheaper than `lineUpDue` where nothing is.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: what became due before that does not count
 */
export async function anyNotInLine(postgres: Postgres, sinceMs: number): Promise<boolean> {
  const [row] = await postgres.query<{ yes: boolean }>(findNotInLine, { since_ms: sinceMs });
  return row!.yes;
}

export interface LinedUp {
  count: number;
  /**
   * Milliseconds since 1970, by Postgres' clock: what became due before that is in line. Infinite: all that was due.
   */
  upToMs: number;
}

/**
 * Deliveries that are due and have an object take the turn of their object, or their place in line; none where another
 * process sees to that at this moment.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: what became due before that is left
 */
export async function lineUpDue(postgres: Postgres, limit: number, sinceMs = 0): Promise<LinedUp> {
  const values = { limit, since_ms: sinceMs };
  const rows = await postgres.query<{ count: number; is_mine: boolean; last_ms: number | null }>(lineUpItems, values);
  const { count, is_mine: isMine, last_ms: lastMs } = rows[0]!;
  return { count, upToMs: isMine ? (lastMs ?? Infinity) : sinceMs };
}
