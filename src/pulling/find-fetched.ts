import { statement, type Statement } from '../infra/postgres/statement.js';

/** The last of the next deliveries to search, of whatever subscriptions, if there are more of them up to `$to`. */
export const rangeEnd = statement(
  'pull-range-end',
  `SELECT notification_id FROM delivery WHERE notification_id > $after::uuid AND notification_id <= $to::uuid
   ORDER BY notification_id OFFSET $rows::int - 1 LIMIT 1`,
);

/**
 * Which blocks of notifications behind `$after` may have the mark, by so many digests (docs/decisions/0040). There is
 * none of what lies between two digests. One that reaches beyond the horizon is left alone: after Postgres' clock was
 * set back, more may come into its block. The bits are looked up for each digest, in order, so that no more are read
 * than are needed: they are a page each.
 * @param condition over a digest: it may have the mark of the subscription
 */
export const digested = (condition: string): Statement =>
  statement(
    'pull-digested',
    `WITH known AS MATERIALIZED (
       SELECT (SELECT from_id FROM digest ORDER BY from_id LIMIT 1) AS first,
         (SELECT to_id FROM digest WHERE from_id <= $horizon::uuid AND to_id <= $horizon ORDER BY from_id DESC LIMIT 1) AS last,
         coalesce((SELECT from_id FROM digest WHERE from_id <= $after::uuid ORDER BY from_id DESC LIMIT 1), $after) AS start
     ),
     reached AS MATERIALIZED (
       SELECT known.*, (SELECT from_id FROM digest WHERE from_id >= start ORDER BY from_id OFFSET $digests::int LIMIT 1) AS next
       FROM known
     )
     SELECT first, last, next, (
       SELECT coalesce(json_agg(json_build_object('from', from_id, 'to', to_id) ORDER BY from_id), '[]') FROM (
         SELECT asked.from_id, own.to_id FROM (
           SELECT from_id FROM digest WHERE from_id >= start AND from_id <= last ORDER BY from_id LIMIT $digests
         ) asked CROSS JOIN LATERAL (
           SELECT to_id FROM digest WHERE from_id = asked.from_id AND to_id > $after AND ${condition} LIMIT 1
         ) own
         ORDER BY asked.from_id LIMIT $blocks
       ) block
     ) AS blocks
     FROM reached`,
  );

/*
 * The rule of `asked-not-before.ts`: one that is dated a moment ahead is not to be sent later, its moment is waited
 * for. It comes within a second, or Postgres' clock was set back since.
 */
const isAwaited = `not_before > now() AND not_before <= LEAST(accepted_at, now()) + interval '1 s'`;
const isScheduled = `body IS NOT NULL AND not_before > now() AND not_before > accepted_at + interval '1 s'`;

/**
 * The deliveries of one subscription within windows, each of which the primary key has: an index by subscription would
 * cost each delivery more than its way through the ledger has room for. At least one, and bodies of so many bytes.
 */
export const page = statement(
  'pull-page',
  `WITH page AS MATERIALIZED (
     SELECT d.notification_id, d.state
     FROM unnest($window_after::uuid[], $window_end::uuid[]) AS w (after_id, end_id) CROSS JOIN LATERAL (
       SELECT notification_id, state FROM delivery
       WHERE notification_id > w.after_id AND notification_id <= w.end_id AND subscription_id = $subscription::uuid
         AND notification_id <> ALL ($seen::uuid[])
       ORDER BY notification_id LIMIT $limit
     ) d
     ORDER BY d.notification_id LIMIT $limit
   ),
   sized AS MATERIALIZED (
     SELECT page.*, n.*, sum(n.size) OVER (ORDER BY page.notification_id) AS total
     FROM page CROSS JOIN LATERAL (
       SELECT accepted_at, coalesce(${isAwaited}, false) AS is_awaited, CASE WHEN ${isScheduled} THEN not_before END AS deliver_after,
         coalesce(octet_length(body), 0) AS size
       FROM notification WHERE id = page.notification_id LIMIT 1
     ) n
   )
   SELECT s.notification_id, s.state, s.accepted_at, s.is_awaited, s.deliver_after, n.body
   FROM sized s CROSS JOIN LATERAL (
     SELECT CASE WHEN NOT s.is_awaited AND s.deliver_after IS NULL THEN body END AS body FROM notification WHERE id = s.notification_id LIMIT 1
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
