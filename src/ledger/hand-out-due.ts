import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { handedOutColumns, readHandedOut, withText, type HandedOutRow, type HandedOutTogether } from './handed-out.js';
import { retriesLate } from './ledger.counters.js';

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
      WHERE state = 'waiting' AND next_at <= now() AND (object_key IS NULL OR turn_nr = 0)
      ORDER BY next_at LIMIT $limit FOR UPDATE SKIP LOCKED
    ),
    handed_out AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM due
      WHERE ${sameDelivery('due')}
      RETURNING ${handedOutColumns}, extract(epoch FROM now() - due.next_at)::float8 AS late_seconds
    )
    ${withText('handed_out')}`,
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

/** @param process whose memory the queue is; null: a broker's */
export async function handOutDue(
  postgres: Postgres,
  limit: number,
  process: string | null,
): Promise<HandedOutTogether> {
  const rows = await postgres.query<HandedOutRow & { late_seconds: number }>(handOutDueItems, { limit, process });
  for (const { failures, late_seconds: late } of rows) if (failures > 0) retriesLate.observe(late);
  return readHandedOut(rows);
}
