import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { deadProcesses } from '../liveness/heartbeat.service.js';
import { sameDelivery } from './delivery.js';

// By the dead, who are few, not by everything that some process has in hand: with a queue in memory that is the
// backlog. The plain state would also fit the index of all that is queued, which is as long.
export const freeOfDeadProcessesItems = statement(
  'free-of-dead-processes',
  `WITH freed AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE process = ANY (${deadProcesses}) AND state::text = 'queued' LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET state = 'waiting', next_at = now(), process = NULL
   FROM freed
   WHERE ${sameDelivery('freed')}`,
);

/** Deliveries in the hand of a process that is no longer alive are due at once. @returns how many */
export async function freeOfDeadProcesses(postgres: Postgres, limit: number): Promise<number> {
  return postgres.affected(freeOfDeadProcessesItems, { limit });
}
