import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { DeliveryKey } from './delivery.js';
import { stateOf } from './state-of.js';

const cancelOne = statement(
  'cancel',
  `UPDATE delivery d SET state = 'cancelled', next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now()
   WHERE d.notification_id = $notification AND d.subscription_id = $subscription
     AND d.state IN ('queued', 'waiting', 'held', 'sending')`,
);

/** No further attempt is made. A call that is being made is not taken back. */
export async function cancel(postgres: Postgres, key: DeliveryKey): Promise<'cancelled' | 'not-found' | 'ended'> {
  const values = { notification: key.notificationId, subscription: key.subscriptionId };
  if ((await postgres.affected(cancelOne, values)) > 0) return 'cancelled';
  return (await stateOf(postgres, key)) === undefined ? 'not-found' : 'ended';
}
