import { statement } from '../infra/postgres/statement.js';

/** The last of the next deliveries to search, of whatever subscriptions, if there are more. */
export const rangeEnd = statement(
  'pull-range-end',
  `SELECT notification_id FROM delivery WHERE notification_id > $after::uuid
   ORDER BY notification_id OFFSET $rows::int - 1 LIMIT 1`,
);

/**
 * The deliveries of one subscription within a range, which the primary key has: an index by subscription would cost each delivery
 * more than its way through the ledger has room for. At least one, and bodies of so many bytes.
 */
export const page = statement(
  'pull-page',
  `WITH page AS MATERIALIZED (
     SELECT notification_id, state FROM delivery
     WHERE notification_id > $after::uuid AND notification_id <= $end::uuid AND subscription_id = $subscription::uuid
       AND notification_id <> ALL ($seen::uuid[])
     ORDER BY notification_id LIMIT $limit
   ),
   sized AS MATERIALIZED (
     SELECT page.*, n.*, sum(n.size) OVER (ORDER BY page.notification_id) AS total
     FROM page CROSS JOIN LATERAL (
       SELECT accepted_at, coalesce(not_before > now(), false) AS is_scheduled, coalesce(octet_length(body), 0) AS size
       FROM notification WHERE id = page.notification_id LIMIT 1
     ) n
   )
   SELECT s.notification_id, s.state, s.accepted_at, s.is_scheduled, n.body
   FROM sized s CROSS JOIN LATERAL (
     SELECT CASE WHEN NOT s.is_scheduled THEN body END AS body FROM notification WHERE id = s.notification_id LIMIT 1
   ) n
   WHERE s.total - s.size < $most_bytes ORDER BY s.notification_id`,
);

/** Of subscriptions that somebody waits for, what was committed since. */
export const arrivals = statement(
  'pull-arrivals',
  `SELECT notification_id, subscription_id FROM delivery
   WHERE notification_id > $after::uuid AND subscription_id = ANY ($subscriptions::uuid[])
   ORDER BY notification_id LIMIT $limit`,
);
