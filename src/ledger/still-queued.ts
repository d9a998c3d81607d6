import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { generationOf, generationsIn, handedOut, stillHandedOut, type Delivery, type KeyRow } from './delivery.js';

export const findStillQueued = statement(
  'still-queued',
  `SELECT d.notification_id, d.subscription_id, d.generation FROM ${handedOut.from} JOIN delivery d ON ${stillHandedOut}`,
);

/** Of deliveries that came out of the queue late or twice, those that are still to be sent. */
export async function stillQueued<D extends Delivery>(postgres: Postgres, deliveries: D[]): Promise<D[]> {
  const rows = await postgres.query<KeyRow & { generation: number }>(findStillQueued, handedOut.bind(deliveries));
  const found = generationsIn(rows);
  return deliveries.filter((delivery) => found.has(generationOf(delivery)));
}
