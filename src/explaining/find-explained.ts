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
 * Of rows `s` of `subscription`: what decides what it gets, and what was changed since. The field of an entry that is
 * not there is SQL's null, one whose value is null is not.
 */
const withPast = `
  s.id, s.owner_client_id, s.callback_url, s.channels, s.disabled_at, s.paused_at, s.created_at, s.deleted_at, past.changes,
  past.is_cut
  FROM found AS s CROSS JOIN LATERAL (
    SELECT count(*) = ${mostChanges} AS is_cut,
      json_agg(
        json_build_object('at', (extract(epoch FROM at) * 1000)::float8, 'before', before, 'done', done) ORDER BY at, nr
      ) FILTER (WHERE before->'channels' IS NOT NULL OR before->'disabledAt' IS NOT NULL OR done IS NOT NULL) AS changes
    FROM (
      SELECT at, nr, before,
        CASE action WHEN 'subscription.created' THEN 'created' WHEN 'subscription.deleted' THEN 'deleted' END AS done
      FROM audit_entry
      WHERE left(subject, 200) = 'subscription/' || s.id AND subject = 'subscription/' || s.id AND at > $since::timestamptz
      ORDER BY at, nr LIMIT ${mostChanges}
    ) AS entry
  ) AS past
  ORDER BY s.id`;

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
