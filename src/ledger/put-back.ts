import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { handedOut, stillHandedOut, type Delivery } from './delivery.js';

export const putBackItems = statement(
  'put-back',
  `UPDATE delivery d SET state = 'waiting', next_at = now() + $delay_ms * interval '1 ms', process = NULL
   FROM ${handedOut.from} WHERE ${stillHandedOut}`,
);

/** Deliveries that were handed out, and that the queue refused, are due again after `delayMs`. */
export async function putBack(postgres: Postgres, deliveries: Delivery[], delayMs: number): Promise<void> {
  await postgres.query(putBackItems, { ...handedOut.bind(deliveries), delay_ms: delayMs });
}
