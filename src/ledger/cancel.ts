import type { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryKey } from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, perDay } from './per-day.js';
import { stateOf } from './state-of.js';

export const cancelOne = perDay(
  'cancel',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now()
   WHERE d.notification_id = $notification AND d.subscription_id = $subscription
     AND d.state IN ('queued', 'waiting', 'held', 'sending')`,
);

/** No further attempt is made. A call that is being made is not taken back. */
export async function cancel(postgres: Postgres, key: DeliveryKey): Promise<'cancelled' | 'not-found' | 'ended'> {
  const values = { notification: key.notificationId, subscription: key.subscriptionId };
  const changed = postgres.affected(cancelOne(dayOfId(key.notificationId)), values);
  if ((await onDay(changed, 0)) > 0) return 'cancelled';
  return (await stateOf(postgres, key)) === undefined ? 'not-found' : 'ended';
}
