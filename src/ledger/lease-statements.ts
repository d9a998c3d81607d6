import type { Statement } from '../infra/postgres/postgres.js';

/* What lends deliveries to a queue or a process and takes them back. What statements.ts says of time and arrays holds here. */

/**
 * Takes what is due, hands it out under a new generation and a lease, and brings the text along where it is short. Also what
 * has become too old: whether it was sent before, and only the ledger does not know, the worker can tell.
 */
export const claimDue: Statement = {
  name: 'claim-due',
  text: `
    WITH due AS MATERIALIZED (
      SELECT notification_id, subscription_id, state = 'held' OR failures > 0 AS is_slow
      FROM delivery
      WHERE state IN ('waiting', 'held') AND next_at <= now()
      ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED
    ),
    claimed AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = now() + $2 * interval '1 ms', queued_at = now(), owner = $3
      FROM due
      WHERE d.notification_id = due.notification_id AND d.subscription_id = due.subscription_id
      RETURNING d.notification_id, d.subscription_id, d.generation, d.attempts, d.failures, d.replays, due.is_slow,
        (extract(epoch FROM d.expires_at) * 1000)::bigint AS expires_ms
    )
    SELECT c.*, CASE WHEN octet_length(n.body) <= $4 THEN n.body END AS body,
      (SELECT version FROM catalogue) AS catalogue_version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms
    FROM claimed c JOIN notification n ON n.id = c.notification_id`,
};

/** The state of deliveries that came out of the queue late or twice: who still has generation and lease may be sent. */
export const inspect: Statement = {
  name: 'inspect',
  text: `
    SELECT d.notification_id, d.subscription_id, d.generation
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS item (notification_id, subscription_id, generation)
    JOIN delivery d USING (notification_id, subscription_id)
    WHERE d.state::text = 'queued' AND d.generation = item.generation`,
};

/** What was handed out but could not be queued, or is given back untouched, is due again in $4 milliseconds. */
export const putBack: Statement = {
  name: 'put-back',
  text: `
    UPDATE delivery d SET state = 'waiting', next_at = now() + $4 * interval '1 ms', owner = NULL
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS item (notification_id, subscription_id, generation)
    WHERE d.notification_id = item.notification_id AND d.subscription_id = item.subscription_id
      AND d.state::text = 'queued' AND d.generation = item.generation`,
};

/**
 * Ends the lease in $4 milliseconds: somebody else seems to be sending it, and if not, it comes back soon. The queue no longer
 * has it, so $5 does: else whoever looks at leases would think it still stood in line.
 */
export const shortenLease: Statement = {
  name: 'shorten-lease',
  text: `
    UPDATE delivery d SET next_at = LEAST(d.next_at, now() + $4 * interval '1 ms'), owner = $5
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS item (notification_id, subscription_id, generation)
    WHERE d.notification_id = item.notification_id AND d.subscription_id = item.subscription_id
      AND d.state::text = 'queued' AND d.generation = item.generation`,
};

/** The queue no longer has these, one process does: its end frees them. */
export const own: Statement = {
  name: 'own',
  text: `
    UPDATE delivery d SET owner = $4
    FROM unnest($1::uuid[], $2::uuid[], $3::int[]) AS item (notification_id, subscription_id, generation)
    WHERE d.notification_id = item.notification_id AND d.subscription_id = item.subscription_id
      AND d.state::text = 'queued' AND d.generation = item.generation`,
};

/** Claimed for sending, and nobody came back to say what became of it: its time is over, or its process is. */
export const endSending: Statement = {
  name: 'end-sending',
  text: `
    UPDATE delivery d SET
      state = 'unknown', next_at = NULL, owner = NULL, ended_at = now(),
      last_error = 'the worker ended, or could not report, after it had the right to send'
    WHERE d.state = 'sending' AND (d.next_at <= now()
      OR NOT EXISTS (SELECT FROM process p WHERE p.id = d.owner AND p.expires_at > now()))
    RETURNING d.notification_id, d.subscription_id`,
};

/** Deliveries in the hand of a process that is no longer alive are due at once. */
export const freeOrphaned: Statement = {
  name: 'free-orphaned',
  text: `
    UPDATE delivery d SET state = 'waiting', next_at = now(), owner = NULL
    WHERE d.owner IS NOT NULL AND d.state = 'queued'
      AND NOT EXISTS (SELECT FROM process p WHERE p.id = d.owner AND p.expires_at > now())`,
};

export const hasEndedLease: Statement = {
  name: 'has-ended-lease',
  text: `SELECT EXISTS (SELECT FROM delivery WHERE state = 'queued' AND next_at <= now()) AS yes`,
};

/**
 * Leases that ended. What was queued before $1, the time up to which the workers are done with the queue, was lost and is
 * due at once; the rest still waits in line, and to queue it a second time would only make the line longer.
 */
export const endLeases: Statement = {
  name: 'end-leases',
  text: `
    UPDATE delivery d SET
      state = CASE WHEN is_lost THEN 'waiting'::delivery_state ELSE 'queued'::delivery_state END,
      next_at = CASE WHEN is_lost THEN now() ELSE now() + $2 * interval '1 ms' END,
      owner = NULL
    FROM (
      SELECT notification_id, subscription_id, queued_at <= $1 OR owner IS NOT NULL AS is_lost FROM delivery
      WHERE state = 'queued' AND next_at <= now() ORDER BY next_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) ended
    WHERE d.notification_id = ended.notification_id AND d.subscription_id = ended.subscription_id
    RETURNING is_lost`,
};

/**
 * All that was handed to the queue before $1 is due at once, because the queue does not have it: it is new and holds nothing,
 * or it has moved on, and somebody died who may not have got round to publishing.
 */
export const freeQueued: Statement = {
  name: 'free-queued',
  text: `
    WITH freed AS (
      UPDATE delivery d SET state = 'waiting', next_at = now()
      WHERE d.state = 'queued' AND d.owner IS NULL AND d.queued_at < $1
      RETURNING 1
    )
    SELECT count(*)::int AS count FROM freed`,
};

export const recordProgress: Statement = {
  name: 'record-progress',
  text: `
    INSERT INTO lane_progress (lane, process, newest_taken, oldest_in_hand, reported_at)
    SELECT lane, $4, to_timestamp(newest_ms / 1000.0), to_timestamp(oldest_ms / 1000.0), now()
    FROM unnest($1::text[], $2::float8[], $3::float8[]) AS item (lane, newest_ms, oldest_ms)
    ON CONFLICT (lane, process) DO UPDATE SET
      newest_taken = EXCLUDED.newest_taken, oldest_in_hand = EXCLUDED.oldest_in_hand, reported_at = EXCLUDED.reported_at`,
};

/**
 * By lane, how far the workers are. What a worker has in hand goes back to the queue when it dies, so its last report counts
 * for $1 milliseconds more; by then somebody else has taken it again, and says so himself.
 */
export const readProgress: Statement = {
  name: 'read-progress',
  text: `
    SELECT lane, (extract(epoch FROM MAX(newest_taken)) * 1000)::bigint AS newest_ms,
      (extract(epoch FROM MIN(oldest_in_hand)) * 1000)::bigint AS oldest_ms
    FROM lane_progress WHERE reported_at > now() - $1::float8 * interval '1 ms' GROUP BY lane`,
};

/** When a process ended without a word, the first after $1: it counted as alive until then. */
export const deathAfter: Statement = {
  name: 'death-after',
  text: `
    SELECT ceil(extract(epoch FROM MIN(expires_at)) * 1000)::float8 AS died_ms FROM process
    WHERE expires_at <= now() AND expires_at > to_timestamp($1::float8 / 1000)`,
};

/** Processes long gone, and how far they were. Who is not in the table is as dead as who is there with an expired row. */
export const sweepProcesses: Statement = {
  name: 'sweep-processes',
  text: `
    WITH gone AS (DELETE FROM process WHERE expires_at <= now() - interval '1 hour')
    DELETE FROM lane_progress WHERE reported_at <= now() - $1::float8 * interval '1 ms'`,
};
