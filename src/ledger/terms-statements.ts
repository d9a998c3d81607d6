import type { Statement } from '../infra/postgres/postgres.js';

/* The statements of notifications on terms: once, later, or only while they are fresh. */

/**
 * Like `accept`, for notifications on terms: each happens only if all its keys were free (a free key is taken by the same
 * statement, so the unique constraint decides between processes), not before its time, and not after it. Keys are taken in
 * order, so that two batches with the same keys wait for each other rather than deadlock. Times that do not apply are
 * infinite. Answers which notifications did not happen, and which deliveries are not for the queue now.
 * Joins would compare every row with every other here (see `preferIndexes`): hence subscripts and `NOT IN`, which hashes.
 */
export const acceptOnTerms: Statement = {
  name: 'accept-on-terms',
  text: `
    WITH current AS MATERIALIZED (SELECT version FROM catalogue),
    wanted AS MATERIALIZED (
      SELECT ($2::uuid[])[nr] AS id, application, operation, key, request_hash, keep_seconds
      FROM unnest($8::int[], $9::text[], $10::text[], $11::text[], $12::text[], $13::int[])
        AS w (nr, application, operation, key, request_hash, keep_seconds)
      WHERE (SELECT version FROM current) = $1
    ),
    taken AS (
      INSERT INTO request_key AS k (application, operation, key, result_id, request_hash, expires_at)
      SELECT application, operation, key, id, request_hash, now() + keep_seconds * interval '1 s'
      FROM wanted ORDER BY application, operation, key
      ON CONFLICT (application, operation, key) DO UPDATE SET
        result_id = EXCLUDED.result_id, request_hash = EXCLUDED.request_hash, expires_at = EXCLUDED.expires_at,
        is_duplicate = false
      WHERE k.expires_at <= now()
      RETURNING k.result_id
    ),
    refused AS MATERIALIZED (
      SELECT id FROM (SELECT id, 1 AS wanted FROM wanted UNION ALL SELECT result_id, -1 FROM taken) AS keys
      GROUP BY id HAVING sum(wanted) > 0
    ),
    item AS MATERIALIZED (
      SELECT id, channel, publisher, body,
        to_timestamp(not_before_ms / 1000) AS not_before, to_timestamp(expires_ms / 1000) AS expires_at
      FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::float8[])
        AS i (id, channel, publisher, body, not_before_ms, expires_ms)
      WHERE (SELECT version FROM current) = $1 AND id NOT IN (SELECT id FROM refused)
    ),
    notifications AS (
      INSERT INTO notification (id, channel, publisher, body, not_before)
      SELECT id, channel, publisher, body, nullif(not_before, '-infinity') FROM item
    ),
    planned AS MATERIALIZED (
      SELECT ($2::uuid[])[nr] AS id, subscription_id,
        to_timestamp(($6::float8[])[nr] / 1000) AS not_before, to_timestamp(($7::float8[])[nr] / 1000) AS expires_at
      FROM unnest($14::int[], $15::uuid[]) AS d (nr, subscription_id)
      WHERE (SELECT version FROM current) = $1
    ),
    deliveries AS (
      INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, owner, expires_at, ended_at)
      SELECT id, subscription_id,
        CASE WHEN expires_at <= now() THEN 'expired' WHEN not_before > now() THEN 'waiting' ELSE $16::delivery_state END,
        CASE WHEN expires_at <= now() THEN NULL WHEN not_before > now() THEN not_before
             ELSE now() + $17 * interval '1 ms' END,
        now(),
        CASE WHEN expires_at <= now() OR not_before > now() THEN NULL ELSE $18 END,
        nullif(expires_at, 'infinity'),
        CASE WHEN expires_at <= now() THEN now() END
      FROM planned WHERE id NOT IN (SELECT id FROM refused)
    )
    SELECT version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
      ARRAY(SELECT id FROM refused)::text[] AS refused,
      ARRAY(SELECT id FROM item WHERE expires_at <= now())::text[] AS expired,
      ARRAY(SELECT id FROM item WHERE not_before > now())::text[] AS scheduled
    FROM current`,
};

/** What stands under keys that were not free. */
export const findKeys: Statement = {
  name: 'find-keys',
  text: `
    SELECT k.application, k.operation, k.key, k.result_id, k.request_hash, k.is_duplicate
    FROM unnest($1::text[], $2::text[], $3::text[]) AS w (application, operation, key)
    JOIN request_key k USING (application, operation, key)`,
};

/** Requests that repeat content seen before: asked again, they get the notification with that content. */
export const redirectKeys: Statement = {
  name: 'redirect-keys',
  text: `
    UPDATE request_key k SET result_id = w.result_id, is_duplicate = true
    FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS w (application, operation, key, result_id)
    WHERE k.application = w.application AND k.operation = w.operation AND k.key = w.key`,
};

/** Content of requests that were made before: it was not published now, so its key is free. */
export const freeKeys: Statement = {
  name: 'free-keys',
  text: `
    DELETE FROM request_key k
    USING unnest($1::text[], $2::text[], $3::text[]) AS w (application, operation, key)
    WHERE k.application = w.application AND k.operation = w.operation AND k.key = w.key`,
};

export const lockKey: Statement = {
  name: 'lock-key',
  text: `
    SELECT result_id, is_duplicate FROM request_key
    WHERE application = $1 AND operation = $2 AND key = $3 AND expires_at > now() FOR UPDATE`,
};

/** For the length of the transaction the catalogue stays at the version found. */
export const lockCatalogue: Statement = { name: 'lock-catalogue', text: 'SELECT version FROM catalogue FOR SHARE' };

/**
 * A notification that is still to be sent later, and of which nothing was handed out yet; what ended without having been
 * handed out is no obstacle. Keeps the dispatcher off it.
 */
export const lockScheduled: Statement = {
  name: 'lock-scheduled',
  text: `
    WITH mine AS (SELECT state, generation, attempts FROM delivery WHERE notification_id = $1 FOR UPDATE)
    SELECT id FROM notification n
    WHERE n.id = $1 AND n.not_before > now()
      AND NOT EXISTS (
        SELECT FROM mine
        WHERE NOT (state = 'waiting' AND generation = 1
          OR state IN ('cancelled', 'expired', 'failed') AND generation <= 2 AND attempts = 0)
      )
    FOR UPDATE`,
};

export const forgetDeliveries: Statement = {
  name: 'forget-deliveries',
  text: 'DELETE FROM delivery WHERE notification_id = $1',
};

export const replaceNotification: Statement = {
  name: 'replace-notification',
  text: `
    WITH key AS (
      UPDATE request_key SET request_hash = $7, expires_at = GREATEST(expires_at, now() + $8 * interval '1 s')
      WHERE application = $9 AND operation = 'put' AND key = $10
    ),
    replaced AS (
      UPDATE notification SET channel = $2, body = $3, not_before = to_timestamp($4::float8 / 1000) WHERE id = $1
    )
    INSERT INTO delivery (notification_id, subscription_id, state, next_at, expires_at)
    SELECT $1, subscription_id, 'waiting', coalesce(to_timestamp($4::float8 / 1000), now()), to_timestamp($5::float8 / 1000)
    FROM unnest($6::uuid[]) AS d (subscription_id)`,
};

/** Passes over what somebody is taking anew at this moment: to wait for each other could end in a deadlock. */
export const sweepKeys: Statement = {
  name: 'sweep-keys',
  text: `
    DELETE FROM request_key WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM request_key WHERE expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED
    ))
    RETURNING operation`,
};
