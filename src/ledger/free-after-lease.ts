import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';

// Only what is in a process' hand has no `queued_at`, so the index on it, and on `next_at`, leads to what is in flight,
// and to no backlog.
export const freeAfterLeaseItems = statement(
  'free-after-lease',
  `WITH freed AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE state = 'queued' AND queued_at IS NULL AND next_at >= to_timestamp($since_ms::float8 / 1000) AND next_at <= now()
     LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET state = 'waiting', next_at = now(), process = NULL
   FROM freed
   WHERE ${sameDelivery('freed')}`,
);

/**
 * Deliveries that a process kept in hand for longer than their lease are due at once.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: of leases that ended after that
 * @returns how many
 */
export async function freeAfterLease(postgres: Postgres, sinceMs: number, limit: number): Promise<number> {
  return postgres.affected(freeAfterLeaseItems, { since_ms: sinceMs, limit });
}
