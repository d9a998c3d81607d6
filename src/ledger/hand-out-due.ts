import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { keyOf, longestInlineBody, sameDelivery, type HandedOut, type KeyRow } from './delivery.js';

export interface HandedOutTogether {
  /** `isSlow`: it failed or was held before, and travels apart from first attempts. */
  deliveries: (HandedOut & { isSlow: boolean })[];
  /** At least the version any of them was matched with. */
  catalogueVersion: number;
  /** Milliseconds since 1970, by Postgres' clock. */
  queuedAt: number;
}

/**
 * Hands out what is due under a new generation, and brings the text along where it is short. Also what has become too old:
 * whether it was sent before, and only the ledger does not know, the worker can tell.
 *
 * One that keeps order and is not in line yet is not handed out: see lineUpDue.
 *
 * The text is looked up in a subquery of its own (OFFSET 0), not joined, for the reason that `sameDelivery` gives.
 */
export const handOutDueItems = statement(
  'hand-out-due',
  `
    WITH due AS MATERIALIZED (
      SELECT notification_id, subscription_id, held_for IS NOT NULL OR failures > 0 AS is_slow
      FROM delivery
      WHERE state = 'waiting' AND next_at <= now() AND (object_key IS NULL OR turn_nr = 0)
      ORDER BY next_at LIMIT $limit FOR UPDATE SKIP LOCKED
    ),
    handed_out AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM due
      WHERE ${sameDelivery('due')}
      RETURNING d.notification_id, d.subscription_id, d.generation, d.attempts, d.failures, d.replays, due.is_slow,
        d.held_for IS NOT NULL AS is_released,
        (extract(epoch FROM d.expires_at) * 1000)::bigint AS expires_ms
    )
    SELECT h.*, n.body,
      (SELECT version FROM catalogue) AS catalogue_version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms
    FROM handed_out h CROSS JOIN LATERAL (
      SELECT CASE WHEN octet_length(body) <= $longest_body THEN body END AS body
      FROM notification WHERE id = h.notification_id OFFSET 0
    ) n`,
);

export const findDue = statement(
  'any-due',
  `SELECT EXISTS (SELECT FROM delivery WHERE state = 'waiting' AND next_at <= now()) AS yes`,
);

/** Whether anything is due. */
export async function anyDue(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.query<{ yes: boolean }>(findDue);
  return row!.yes;
}

interface HandedOutRow extends KeyRow {
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  is_slow: boolean;
  is_released: boolean;
  expires_ms: string | null;
  body: string | null;
  catalogue_version: string;
  now_ms: string;
}

/** @param process whose memory the queue is; null: a broker's */
export async function handOutDue(
  postgres: Postgres,
  limit: number,
  process: string | null,
): Promise<HandedOutTogether> {
  const rows = await postgres.query<HandedOutRow>(handOutDueItems, {
    limit,
    process,
    longest_body: longestInlineBody,
  });
  return {
    deliveries: rows.map((row) => ({
      ...keyOf(row),
      generation: row.generation,
      attempts: row.attempts,
      failures: row.failures,
      replays: row.replays,
      expiresAt: row.expires_ms === null ? null : Number(row.expires_ms),
      isSlow: row.is_slow,
      isReleased: row.is_released,
      body: row.body === null ? null : Buffer.from(row.body),
    })),
    catalogueVersion: Number(rows[0]?.catalogue_version ?? 0),
    queuedAt: Number(rows[0]?.now_ms ?? 0),
  };
}
