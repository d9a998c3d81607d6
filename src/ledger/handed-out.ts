import { keyOf, longestInlineBody, type HandedOut, type KeyRow } from './delivery.js';

/** Deliveries that one statement handed out, or several that belong together. */
export interface HandedOutTogether {
  deliveries: HandedOut[];
  /** At least the version any of them was matched with. */
  catalogueVersion: number;
  /** Milliseconds since 1970, by Postgres' clock: when the first of them was handed out. */
  queuedAt: number;
}

/**
 * Of the rows `d` of `delivery`, what a worker must know of each: for the RETURNING of the statement that hands them
 * out.
 */
export const handedOutColumns = `d.notification_id, d.subscription_id, d.generation, d.attempts, d.failures, d.replays,
        d.held_for IS NOT NULL AS is_released, (extract(epoch FROM d.expires_at) * 1000)::bigint AS expires_ms`;

/**
 * The answer of a statement that hands out: the rows of `handedOut`, which have at least the columns above, each with
 * its text where that is short. The text is looked up in a subquery of its own (OFFSET 0), not joined, for the reason
 * that `sameDelivery` gives.
 * @param notification the table that has the texts
 */
export const withText = (handedOut: string, notification = 'notification'): string => `
    SELECT h.*, n.body, n.trace_parent,
      (SELECT version FROM catalogue) AS catalogue_version, (extract(epoch FROM now()) * 1000)::bigint AS now_ms
    FROM ${handedOut} AS h LEFT JOIN LATERAL (
      SELECT CASE WHEN octet_length(body) <= ${longestInlineBody} THEN body END AS body, trace_parent
      FROM ${notification} WHERE id = h.notification_id OFFSET 0
    ) n ON true`;

/** A row of that answer. */
export interface HandedOutRow extends KeyRow {
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  is_released: boolean;
  expires_ms: string | null;
  body: string | null;
  trace_parent: string | null;
  catalogue_version: string;
  now_ms: string;
}

export const readHandedOut = (rows: readonly HandedOutRow[]): HandedOutTogether => ({
  deliveries: withBodies(rows),
  catalogueVersion: Math.max(0, ...rows.map((row) => Number(row.catalogue_version))),
  queuedAt: rows.length === 0 ? 0 : Math.min(...rows.map((row) => Number(row.now_ms))),
});

/**
 * Deliveries of one notification that follow each other share its text: one to hundreds of subscriptions takes the
 * memory of one.
 */
function withBodies(rows: readonly HandedOutRow[]): HandedOut[] {
  let before: HandedOut | undefined;
  return rows.map((row) => {
    const key = keyOf(row);
    const shared = before?.notificationId === key.notificationId ? before.body : null;
    return (before = {
      ...key,
      generation: row.generation,
      attempts: row.attempts,
      failures: row.failures,
      replays: row.replays,
      isReleased: row.is_released,
      isProbe: false,
      expiresAt: row.expires_ms === null ? null : Number(row.expires_ms),
      body: row.body === null ? null : (shared ?? Buffer.from(row.body)),
      traceParent: row.trace_parent ?? undefined,
    });
  });
}
