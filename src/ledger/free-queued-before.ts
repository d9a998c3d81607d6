import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';

export const freeQueuedBeforeItems = statement(
  'free-queued-before',
  `WITH freed AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE state = 'queued'
       AND queued_at >= to_timestamp($since_ms::float8 / 1000) AND queued_at < to_timestamp($before_ms::float8 / 1000)
     ORDER BY queued_at LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET state = 'waiting', next_at = now(), process = NULL
   FROM freed
   WHERE ${sameDelivery('freed')}`,
);

/**
 * Deliveries that were handed to the queue in that time, and that no worker keeps in hand, are due at once.
 * @param sinceMs milliseconds since 1970, by Postgres' clock
 * @param beforeMs likewise
 * @returns how many
 */
export async function freeQueuedBefore(
  postgres: Postgres,
  sinceMs: number,
  beforeMs: number,
  limit: number,
): Promise<number> {
  return postgres.affected(freeQueuedBeforeItems, { since_ms: sinceMs, before_ms: beforeMs, limit });
}

export const findQueued = statement(
  'any-queued-for',
  `SELECT EXISTS (
     SELECT FROM delivery
     WHERE state = 'queued' AND queued_at >= to_timestamp($since_ms::float8 / 1000) AND queued_at < now() - $ms * interval '1 ms'
   ) AS yes`,
);

/**
 * Whether anything was handed to the queue longer ago than that, and is not done.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: after that
 */
export async function anyQueuedFor(postgres: Postgres, sinceMs: number, ms: number): Promise<boolean> {
  const [row] = await postgres.query<{ yes: boolean }>(findQueued, { since_ms: sinceMs, ms });
  return row!.yes;
}
