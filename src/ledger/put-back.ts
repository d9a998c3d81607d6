import type { Postgres } from '../infra/postgres/postgres.js';
import { handedOut, notificationIdOf, stillHandedOut, type Delivery } from './delivery.js';
import { onEachDay, perDay } from './per-day.js';

export const putBackItems = perDay(
  'put-back',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'waiting', next_at = now() + $delay_ms * interval '1 ms', process = NULL
   FROM ${handedOut.from} WHERE ${stillHandedOut}`,
);

/** Of one statement: a notification may have a hundred thousand deliveries, and the queue refuses them together. */
const putBackTogether = 4096;

/** Deliveries that were handed out, and that the queue refused, are due again after `delayMs`. */
export async function putBack(postgres: Postgres, deliveries: Delivery[], delayMs: number): Promise<void> {
  for (let at = 0; at < deliveries.length; at += putBackTogether) {
    await onEachDay(deliveries.slice(at, at + putBackTogether), notificationIdOf, (day, items) =>
      postgres.query(putBackItems(day), { ...handedOut.bind(items), delay_ms: delayMs }),
    );
  }
}
