import { statement } from '../infra/postgres/statement.js';
import { askedNotBefore } from '../ledger/asked-not-before.js';

/* Statements that read notifications for people. */

/** Of the deliveries of each notification in a list, as many are looked at. */
export const mostListed = 50;

/** The columns that a list shows. Newest first; one whose day was dropped is missing. */
export const notificationsOfList = statement(
  'read-notifications',
  `SELECT n.id, n.channel, n.publisher, n.request_key, n.not_before, n.accepted_at, n.content ->> 'hoofdObject' AS main_object,
     n.content ->> 'resource' AS resource, n.content ->> 'resourceUrl' AS resource_url, n.content ->> 'actie' AS action,
     n.content -> 'kenmerken' AS characteristics, d.deliveries
   FROM unnest($ids::uuid[]) AS k (id)
   CROSS JOIN LATERAL (
     SELECT id, channel, publisher, request_key, ${askedNotBefore}, accepted_at,
       CASE WHEN octet_length(body) <= 65536 THEN body::json END AS content
     FROM notification WHERE id = k.id LIMIT 1
   ) n
   CROSS JOIN LATERAL (
     SELECT coalesce(json_object_agg(state, count), '{}') AS deliveries FROM (
       SELECT state, count(*)::int AS count FROM (
         SELECT state FROM delivery WHERE notification_id = k.id LIMIT ${mostListed}
       ) AS first_ones GROUP BY state
     ) AS of_state
   ) d
   ORDER BY n.id DESC`,
);

export const oneNotification = statement(
  'read-notification',
  `SELECT id, channel, publisher, request_key, ${askedNotBefore}, accepted_at, body FROM notification WHERE id = $id`,
);

/** Requests that were answered with it, as long as their keys are remembered. */
export const duplicatesOf = statement(
  'read-duplicates',
  `SELECT application, key FROM once_key WHERE result_id = $id AND is_duplicate LIMIT $most`,
);

/** Not beyond `$most`. */
export const countDeliveries = statement(
  'count-deliveries-of-notification',
  `SELECT count(*)::int AS count FROM (SELECT FROM delivery WHERE notification_id = $id LIMIT $most) AS counted`,
);

export const subscriptionsOf = statement(
  'read-subscriptions-of-deliveries',
  `SELECT id, owner_client_id, callback_url, disabled_at, paused_at, deleted_at IS NOT NULL AS is_deleted
   FROM subscription WHERE id = ANY ($ids::uuid[])`,
);

/** Replays that sent deliveries again, cancelled or closed them, with others. One that ended long ago is missing. */
export const workOn = statement(
  'read-work-on-deliveries',
  `SELECT id, kind, note, created_by FROM replay WHERE id = ANY ($ids::uuid[])`,
);

export const endpointsAt = statement(
  'read-endpoints-of-deliveries',
  `SELECT address, opened_at, reason, next_probe_at FROM endpoint WHERE address = ANY ($addresses::text[])`,
);
