import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { handedOutColumns, readHandedOut, withText, type HandedOutRow, type HandedOutTogether } from './handed-out.js';
import { retriesLate } from './ledger.counters.js';

/** And in turn, where it keeps order. */
const isDue = `state = 'waiting' AND (object_key IS NULL OR turn_nr = 0)
        AND next_at >= to_timestamp($since_ms::float8 / 1000) AND next_at <= now()`;

/**
 * Hands out what is due under a new generation, and brings the text along where it is short. Also deliveries that have
 * become too old: the ledger may not know that one was sent before, and its worker asks the seal.
 *
 * One that keeps order and is not in line yet is not handed out: see lineUpDue.
 */
export const handOutDueItems = statement(
  'hand-out-due',
  `
    WITH due AS MATERIALIZED (
      SELECT notification_id, subscription_id, next_at FROM delivery
      WHERE ${isDue}
      ORDER BY next_at LIMIT $limit FOR UPDATE SKIP LOCKED
    ),
    handed_out AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM due
      WHERE ${sameDelivery('due')}
      RETURNING ${handedOutColumns}, floor(extract(epoch FROM due.next_at) * 1000)::float8 AS due_ms
    )
    ${withText('handed_out')}`,
);

export const findDue = statement(
  'any-due',
  `SELECT EXISTS (
     SELECT FROM delivery
     WHERE ${isDue}
   ) AS yes`,
);

/**
 * Whether anything may be handed out.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: what became due before that does not count
 */
export async function anyDue(postgres: Postgres, sinceMs: number): Promise<boolean> {
  const [row] = await postgres.query<{ yes: boolean }>(findDue, { since_ms: sinceMs });
  return row!.yes;
}

export interface HandedOutDue extends HandedOutTogether {
  /**
   * Milliseconds since 1970, by Postgres' clock: what became due before that is handed out. Infinite: all that was due.
   */
  upToMs: number;
}

/**
 * @param process whose memory the queue is; null: a broker's
 * @param sinceMs milliseconds since 1970, by Postgres' clock: what became due before that is left
 */
export async function handOutDue(
  postgres: Postgres,
  limit: number,
  process: string | null,
  sinceMs = 0,
): Promise<HandedOutDue> {
  const values = { limit, process, since_ms: sinceMs };
  const rows = await postgres.query<HandedOutRow & { due_ms: number }>(handOutDueItems, values);
  for (const { failures, now_ms, due_ms } of rows)
    if (failures > 0) retriesLate.observe(Math.max(0, Number(now_ms) - due_ms) / 1000);
  const upToMs = rows.length < limit ? Infinity : Math.max(...rows.map(({ due_ms }) => due_ms));
  return { ...readHandedOut(rows), upToMs };
}
