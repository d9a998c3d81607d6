import type { Statement } from '../infra/postgres/postgres.js';

/*
 * Every statement of the hot path, one per verb, and those of the operator; lease-statements.ts has the dispatcher's. All
 * times are Postgres' own (`now()`), so that a process whose clock is off neither hurries nor delays anything.
 *
 * Rows that come as arrays are looked up one by one by their primary key. Nothing else may look cheap to the planner, which
 * knows little of tables this young, and whose choice stays cached: hence no range of ids, and `state::text` where the
 * plain column would invite it to walk through an index of all that is unfinished.
 */

/**
 * Commits notifications and their deliveries, or nothing: only while the catalogue is at version $1, the one they were
 * matched with. The statement's snapshot decides, so a subscription committed before it began is never missed
 * (docs/decisions/0004). Answers the version it saw and the time it wrote.
 */
export const accept: Statement = {
  name: 'accept',
  text: `
    WITH current AS MATERIALIZED (SELECT version FROM catalogue),
    notifications AS (
      INSERT INTO notification (id, channel, publisher, body)
      SELECT id, channel, publisher, body
      FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) AS item (id, channel, publisher, body)
      WHERE (SELECT version FROM current) = $1
    ),
    deliveries AS (
      INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, owner)
      SELECT ($2::uuid[])[nr], subscription_id, $8::delivery_state, now() + $9 * interval '1 ms', now(), $10
      FROM unnest($6::int[], $7::uuid[]) AS item (nr, subscription_id)
      WHERE (SELECT version FROM current) = $1
    )
    SELECT version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms FROM current`,
};

/**
 * Writes results: the state where the generation still fits (a success always: delivered is delivered), and the attempt
 * in any case. What was claimed for sending is left to who claimed it: a second message of the same generation that found
 * no room would otherwise free it while it is being sent. Written twice it changes nothing the second time.
 * Answers how many became what is counted.
 */
export const settle: Statement = {
  name: 'settle',
  text: `
    WITH result AS (
      SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::delivery_state[], $5::int[],
                           $6::int[], $7::timestamptz[], $8::int[], $9::int[], $10::text[], $11::boolean[])
        AS r (notification_id, subscription_id, generation, state, delay_ms,
              number, started_at, duration_ms, status, error, is_claimed)
    ),
    attempts AS (
      INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error)
      SELECT notification_id, subscription_id, generation, number, started_at, duration_ms, status, error
      FROM result WHERE number IS NOT NULL
      ON CONFLICT DO NOTHING
    ),
    changed AS (
      UPDATE delivery d SET
        state = r.state,
        attempts = GREATEST(d.attempts, coalesce(r.number, 0)),
        failures = d.failures + CASE WHEN r.number IS NOT NULL AND r.state <> 'delivered' THEN 1 ELSE 0 END,
        next_at = now() + r.delay_ms * interval '1 ms',
        owner = NULL,
        last_status = CASE WHEN r.number IS NULL THEN d.last_status ELSE r.status END,
        last_error = CASE WHEN r.number IS NULL AND r.error IS NULL THEN d.last_error ELSE r.error END,
        ended_at = CASE WHEN r.delay_ms IS NULL THEN now() END
      FROM result r
      WHERE d.notification_id = r.notification_id AND d.subscription_id = r.subscription_id
        AND (r.state = 'delivered' AND d.state <> 'delivered'
          OR d.generation = r.generation AND d.state = CASE WHEN r.is_claimed THEN 'sending'::delivery_state ELSE 'queued' END)
      RETURNING d.state
    )
    SELECT state, count(*)::int AS count FROM changed WHERE state IN ('expired', 'unknown') GROUP BY state`,
};

export const bodies: Statement = {
  name: 'bodies',
  text: 'SELECT id, body FROM notification WHERE id = ANY ($1::uuid[]) AND id BETWEEN $2 AND $3',
};

/**
 * At-most-once: the right to send, given once. Whoever gets it back has committed, before the call, that nobody will ever
 * send this again by itself.
 */
export const claimSending: Statement = {
  name: 'claim-sending',
  text: `
    UPDATE delivery d SET state = 'sending', next_at = now() + $4 * interval '1 ms', owner = $5
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS item (notification_id, subscription_id, generation)
    WHERE d.notification_id = item.notification_id AND d.subscription_id = item.subscription_id
      AND d.state::text = 'queued' AND d.generation = item.generation
    RETURNING d.notification_id, d.subscription_id, d.generation`,
};

/**
 * An operator's retry: what waits is due now; what ended without success starts a new series under a new key. Who wants it
 * sent although it is too old gets it sent.
 */
export const retryNow: Statement = {
  name: 'retry-now',
  text: `
    UPDATE delivery d SET
      state = 'waiting', next_at = now(), owner = NULL, generation = d.generation + 1, ended_at = NULL,
      expires_at = CASE WHEN d.expires_at > now() THEN d.expires_at END,
      replays = d.replays + CASE WHEN d.state IN ('waiting', 'held') THEN 0 ELSE 1 END,
      failures = CASE WHEN d.state IN ('waiting', 'held') THEN d.failures ELSE 0 END
    WHERE d.notification_id = $1 AND d.subscription_id = $2
      AND d.state IN ('waiting', 'held', 'failed', 'expired', 'cancelled', 'unknown')`,
};

export const cancel: Statement = {
  name: 'cancel',
  text: `
    UPDATE delivery d SET state = 'cancelled', next_at = NULL, owner = NULL, generation = d.generation + 1, ended_at = now()
    WHERE d.notification_id = $1 AND d.subscription_id = $2 AND d.state IN ('queued', 'waiting', 'held', 'sending')`,
};

/** Runs in the transaction that disables the subscription: its receiver is gone for good. */
export const failAllOfSubscription = `
  UPDATE delivery SET state = 'failed', next_at = NULL, owner = NULL, generation = generation + 1, ended_at = now(),
    last_error = 'the subscription was disabled: its receiver answered 410 Gone'
  WHERE subscription_id = $1 AND state IN ('queued', 'waiting', 'held')`;

/** Runs in the transaction that removes the subscription, hence not prepared. */
export const cancelAllOfSubscription = `
  UPDATE delivery SET state = 'cancelled', next_at = NULL, owner = NULL, generation = generation + 1, ended_at = now()
  WHERE subscription_id = $1 AND state IN ('queued', 'waiting', 'held', 'sending')`;

export const stateOf: Statement = {
  name: 'state-of',
  text: 'SELECT state FROM delivery WHERE notification_id = $1 AND subscription_id = $2',
};
