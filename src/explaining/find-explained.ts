import { statement } from '../infra/postgres/statement.js';
import { askedNotBefore } from '../ledger/asked-not-before.js';
import { mostCountedAhead } from './situation.js';

/** Of the changes of one subscription, as many are read. */
export const mostChanges = 500;

export const notification = statement(
  'explained-notification',
  `SELECT channel, body, ${askedNotBefore}, accepted_at FROM notification WHERE id = $id`,
);

/** When the first entry was noted that is kept. */
export const firstEntry = statement('first-audit-entry', 'SELECT at FROM audit_entry ORDER BY at, nr LIMIT 1');

/**
 * As much is read of the changes of one subscription, with the one that goes beyond it. As much is read as well of all
 * subscriptions with a delivery that a page tells, with their changes, and of all that it searches for others; unless a
 * single one is larger.
 */
export const mostBytes = 4 * 1024 * 1024;

/**
 * Of a subscription `s`, the first changes since, each with the length of all up to it, and of all before it. An entry
 * that an older version wrote does not say how long it is, and is read to be measured.
 */
const changes = `
  SELECT *, lag(length, 1, 0::bigint) OVER (ORDER BY at, nr) AS before_it FROM (
    SELECT at, nr, action, before, sum(coalesce(bytes, octet_length(before::text), 0)) OVER list AS length
    FROM (
      SELECT at, nr, action, before, bytes FROM audit_entry
      WHERE left(subject, 200) = 'subscription/' || s.id AND subject = 'subscription/' || s.id
        AND at > $since::timestamptz
      ORDER BY at, nr LIMIT ${mostChanges}
    ) AS entry
    WINDOW list AS (ORDER BY at, nr ROWS UNBOUNDED PRECEDING)
  ) AS measured`;

/**
 * In the order of their ids, the last subscription before they are more than `rows`, or before they and their changes
 * are too long to be read. None: all may be read. Of what comes after it only the next one is looked at.
 */
const lastToRead = (which: string) => `
  SELECT previous AS id FROM (
    SELECT id, row_number() OVER list AS place, lag(id) OVER list AS previous,
      sum(octet_length(channels::text) + past.length) OVER list AS length
    FROM (SELECT id, channels FROM subscription WHERE ${which} ORDER BY id LIMIT $rows::int + 1) AS s
      CROSS JOIN LATERAL (SELECT coalesce(max(length), 0) AS length FROM (${changes}) AS change) AS past
    WINDOW list AS (ORDER BY id ROWS UNBOUNDED PRECEDING)
  ) AS s
  WHERE place > 1 AND (place > $rows::int OR length > ${mostBytes})
  ORDER BY s.id LIMIT 1`;

/** Of those changes, the ones that are read: however long it is, the first one after the acceptance says most. */
const isRead = `before_it <= ${mostBytes}`;

/** Of subscriptions that have a delivery. */
export const lastOfThese = statement('explained-last-of-these', lastToRead('id = ANY ($ids::uuid[])'));

/** Of a range that is searched for others. */
export const lastInRange = statement('explained-last-in-range', lastToRead('id > $after::uuid'));

/**
 * Of a range of subscriptions, those without a delivery that are or were about the channel; without those that were
 * gone.
 */
export const others = statement(
  'explained-others',
  `SELECT s.id FROM subscription s
   WHERE s.id > $after::uuid AND s.id <= $last::uuid AND (s.deleted_at IS NULL OR s.deleted_at > $since::timestamptz)
     AND NOT EXISTS (SELECT FROM delivery d WHERE d.notification_id = $id::uuid AND d.subscription_id = s.id)
     AND (
       EXISTS (SELECT FROM json_array_elements(s.channels) AS entry WHERE entry->>'channel' = $channel::text)
       OR EXISTS (
         SELECT FROM (${changes}) AS change CROSS JOIN LATERAL json_array_elements(before->'channels') AS entry
         WHERE ${isRead} AND entry->>'channel' = $channel::text
       )
     )
   ORDER BY s.id LIMIT $limit`,
);

/** With the changes since. Those that are too long to be read only say when they were made. */
export const subscriptions = statement(
  'explained-subscriptions',
  `SELECT s.id, s.owner_client_id, s.callback_url, s.channels, s.disabled_at, s.paused_at, s.created_at, s.deleted_at,
     past.*
   FROM subscription s CROSS JOIN LATERAL (
     SELECT count(*) = ${mostChanges} AS is_cut, coalesce(NOT bool_and(${isRead}), false) AS is_large,
       json_agg(
         json_build_object(
           'at', (extract(epoch FROM at) * 1000)::float8,
           'before', CASE WHEN ${isRead} THEN before END,
           'done', CASE action WHEN 'subscription.created' THEN 'created' WHEN 'subscription.deleted' THEN 'deleted' END
         ) ORDER BY at, nr
       ) AS changes
     FROM (${changes}) AS change
   ) AS past
   WHERE s.id = ANY ($ids::uuid[])
   ORDER BY s.id`,
);

const deliveryColumns = `d.subscription_id, d.state, d.held_for, d.held_since, d.next_at, d.queued_at, d.attempts,
  d.failures, d.replays, d.expires_at, d.last_status, d.last_error, d.ended_at, turn.notification_id AS turn_of, line.ahead
  FROM delivery d
    LEFT JOIN turn ON d.state = 'held' AND d.held_for = 'order'
      AND turn.subscription_id = d.subscription_id AND turn.object_key = d.object_key
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS ahead FROM (
        SELECT FROM in_line l
        WHERE d.state = 'held' AND d.held_for = 'order' AND l.subscription_id = d.subscription_id
          AND l.object_key = d.object_key AND l.turn_nr < d.turn_nr
        LIMIT ${mostCountedAhead}
      ) AS before_it
    ) AS line
  WHERE d.notification_id = $id::uuid`;

export const deliveries = statement(
  'explained-deliveries',
  `SELECT ${deliveryColumns} AND d.subscription_id > $after::uuid ORDER BY d.subscription_id LIMIT $limit`,
);

export const deliveryOf = statement(
  'explained-delivery',
  `SELECT ${deliveryColumns} AND d.subscription_id = $subscription::uuid`,
);

/** The notification whose delivery has the turn of an object, for each of these subscriptions. */
export const turns = statement(
  'explained-turns',
  `SELECT subscription_id, notification_id FROM turn
   WHERE subscription_id = ANY ($ids::uuid[]) AND object_key = $object_key::uuid`,
);

/** The notification that a channel's rule finds equal to one with this key. */
export const firstOfContent = statement(
  'explained-content',
  `SELECT result_id FROM once_key
   WHERE application = $application AND operation = $operation AND key = $key AND expires_at > now()`,
);
