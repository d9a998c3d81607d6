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

/** As much of the entries about one subscription is read, and of all that a page tells sent. */
export const mostBytes = 8 * 1024 * 1024;

/** Of a list of channels, the entries about the channel; those about others only keep their place. */
const aboutChannel = (channels: string) =>
  `SELECT coalesce(json_agg(CASE WHEN entry->>'channel' = $channel::text THEN entry ELSE '{}' END ORDER BY place), '[]')
   FROM json_array_elements(${channels}) WITH ORDINALITY AS channels (entry, place)`;

/** Of the fields of an entry that decide, those that it has; without any of them it is SQL's null. */
const deciding = `
  SELECT json_object_agg(key, CASE key WHEN 'channels' THEN (${aboutChannel('value')}) ELSE value END)
  FROM json_each(before) WHERE key IN ('channels', 'disabledAt')`;

/**
 * Of rows `s` of `subscription`: that which decides whether it gets a notification of the channel, and the changes
 * since. The first ones whose texts fit in a page, and in each row how many there are. Of an entry that an older
 * version wrote, its size as it is stored is counted, compressed.
 */
const withPast = `
  row.* FROM (
    SELECT told.*, count(*) OVER ()::int AS found, row_number() OVER list AS place,
      sum(octet_length(channels::text) + coalesce(octet_length(changes::text), 0)) OVER list AS total
    FROM (
      SELECT s.id, s.owner_client_id, s.callback_url, (${aboutChannel('s.channels')}) AS channels, s.disabled_at,
        s.paused_at, s.created_at, s.deleted_at, past.changes, past.is_cut, past.is_large
      FROM found AS s CROSS JOIN LATERAL (
        SELECT count(*) = ${mostChanges} AS is_cut, coalesce(bool_or(NOT fits), false) AS is_large,
          json_agg(
            json_build_object('at', (extract(epoch FROM at) * 1000)::float8, 'before', decided, 'done', done)
            ORDER BY at, nr
          ) FILTER (WHERE decided IS NOT NULL OR done IS NOT NULL) AS changes
        FROM (
          SELECT at, nr, done, fits, CASE WHEN fits THEN (${deciding}) END AS decided
          FROM (
            SELECT *, row_number() OVER list = 1 OR sum(size) OVER list <= ${mostBytes} AS fits
            FROM (
              SELECT at, nr, before, coalesce(bytes, pg_column_size(before), 0) AS size,
                CASE action WHEN 'subscription.created' THEN 'created' WHEN 'subscription.deleted' THEN 'deleted' END AS done
              FROM audit_entry
              WHERE left(subject, 200) = 'subscription/' || s.id AND subject = 'subscription/' || s.id
                AND at > $since::timestamptz
              ORDER BY at, nr LIMIT ${mostChanges}
            ) AS entry
            WINDOW list AS (ORDER BY at, nr ROWS UNBOUNDED PRECEDING)
          ) AS entry
        ) AS entry
      ) AS past
    ) AS told
    WINDOW list AS (ORDER BY id ROWS UNBOUNDED PRECEDING)
  ) AS row
  WHERE place = 1 OR total <= ${mostBytes}
  ORDER BY id`;

export const subscriptions = statement(
  'explained-subscriptions',
  `WITH found AS MATERIALIZED (SELECT * FROM subscription WHERE id = ANY ($ids::uuid[])) SELECT ${withPast}`,
);

/** The last of the next subscriptions to search, if there are more. */
export const rangeEnd = statement(
  'explained-range-end',
  'SELECT id FROM subscription WHERE id > $after::uuid ORDER BY id OFFSET $rows::int - 1 LIMIT 1',
);

/**
 * Of a range of subscriptions, those without a delivery that are or were about the channel; without those that were
 * gone.
 */
export const others = statement(
  'explained-others',
  `WITH found AS MATERIALIZED (
     SELECT * FROM subscription s
     WHERE s.id > $after::uuid AND s.id <= $end::uuid AND (s.deleted_at IS NULL OR s.deleted_at > $since::timestamptz)
       AND NOT EXISTS (SELECT FROM delivery d WHERE d.notification_id = $id::uuid AND d.subscription_id = s.id)
       AND (
         EXISTS (SELECT FROM json_array_elements(s.channels) AS entry WHERE entry->>'channel' = $channel::text)
         OR EXISTS (
           SELECT FROM audit_entry CROSS JOIN LATERAL json_array_elements(before->'channels') AS entry
           WHERE left(subject, 200) = 'subscription/' || s.id AND subject = 'subscription/' || s.id
             AND at > $since::timestamptz AND entry->>'channel' = $channel::text
         )
       )
     ORDER BY s.id LIMIT $limit
   )
   SELECT ${withPast}`,
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
