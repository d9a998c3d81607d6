import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { keyOf, longestInlineBody, sameDelivery, type HandedOut, type KeyRow } from './delivery.js';

/**
 * Releases the oldest deliveries that are held for a subscription, under a new generation. Those that wait for their turn
 * (`order`) are not among them. The released ones that are not settled are counted by an index of their own.
 */
export const releaseItems = statement(
  'release',
  `
    WITH outstanding AS MATERIALIZED (
      SELECT count(*)::int AS count FROM (
        SELECT FROM delivery
        WHERE subscription_id = $subscription AND state = 'queued' AND held_for IS NOT NULL LIMIT $release_window
      ) AS counted
    ),
    oldest AS MATERIALIZED (
      SELECT notification_id, subscription_id FROM delivery
      WHERE subscription_id = $subscription AND state = 'held' AND held_for <> 'order'
      ORDER BY notification_id
      LIMIT GREATEST(0, LEAST($limit, $release_window - (SELECT count FROM outstanding))) FOR UPDATE SKIP LOCKED
    ),
    released AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM oldest
      WHERE ${sameDelivery('oldest')}
      RETURNING d.notification_id, d.subscription_id, d.generation, d.attempts, d.failures, d.replays,
        (extract(epoch FROM d.expires_at) * 1000)::bigint AS expires_ms
    )
    SELECT r.*, n.body, outstanding.count AS outstanding,
      (SELECT version FROM catalogue) AS catalogue_version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms
    FROM outstanding LEFT JOIN released r ON true LEFT JOIN LATERAL (
      SELECT CASE WHEN octet_length(body) <= $longest_body THEN body END AS body
      FROM notification WHERE id = r.notification_id OFFSET 0
    ) n ON true`,
);

export interface Released {
  deliveries: HandedOut[];
  /** Released before, and not yet settled. */
  outstanding: number;
  /** At least the version any of them was matched with. */
  catalogueVersion: number;
  /** Milliseconds since 1970, by Postgres' clock. */
  queuedAt: number;
}

interface ReleasedRow extends KeyRow {
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  expires_ms: string | null;
  body: string | null;
}

/**
 * @param window of the subscription: how many may be released and not yet settled
 * @param limit how many this call may release
 * @param process whose memory the queue is; null: a broker's
 */
export async function release(
  postgres: Postgres,
  { subscriptionId, window, limit }: { subscriptionId: string; window: number; limit: number },
  process: string | null,
): Promise<Released> {
  const rows = await postgres.query<
    { outstanding: number; catalogue_version: string; now_ms: string } & (ReleasedRow | { notification_id: null })
  >(releaseItems, {
    subscription: subscriptionId,
    release_window: window,
    limit,
    process,
    longest_body: longestInlineBody,
  });
  const [first] = rows;
  return {
    deliveries: rows
      .filter((row) => row.notification_id !== null)
      .map((row) => ({
        ...keyOf(row),
        generation: row.generation,
        attempts: row.attempts,
        failures: row.failures,
        replays: row.replays,
        expiresAt: row.expires_ms === null ? null : Number(row.expires_ms),
        isReleased: true,
        body: row.body === null ? null : Buffer.from(row.body),
      })),
    outstanding: first!.outstanding,
    catalogueVersion: Number(first!.catalogue_version),
    queuedAt: Number(first!.now_ms),
  };
}
