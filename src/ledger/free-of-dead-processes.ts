import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';

/** Of a row `d` of `delivery`: the process that has it in hand is no longer alive, whether its row is there or not. */
export const processIsDead = `NOT EXISTS (SELECT FROM process p WHERE p.id = d.process AND p.expires_at > now())`;

// The plain state would also fit the index of all that is queued, which is as long as the backlog.
export const freeItems = statement(
  'free-of-dead-processes',
  `UPDATE delivery d SET state = 'waiting', next_at = now(), process = NULL
   FROM (
     SELECT notification_id, subscription_id FROM delivery d
     WHERE d.process IS NOT NULL AND d.state::text = 'queued' AND ${processIsDead} LIMIT $limit FOR UPDATE SKIP LOCKED
   ) freed
   WHERE ${sameDelivery('freed')}`,
);

/** Deliveries in the hand of a process that is no longer alive are due at once. @returns how many */
export async function freeOfDeadProcesses(postgres: Postgres, limit: number): Promise<number> {
  return postgres.affected(freeItems, { limit });
}
