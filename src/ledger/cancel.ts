import type { Postgres } from '../infra/postgres/postgres.js';
import { changeState, type AlsoThen } from './change-state.js';
import type { DeliveryKey } from './delivery.js';
import { perDay } from './per-day.js';
import { stateOf } from './state-of.js';

export const cancelOne = perDay(
  'cancel',
  (
    of,
  ) => `UPDATE ${of('delivery')} d SET state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now()
   WHERE d.notification_id = $notification AND d.subscription_id = $subscription
     AND d.state IN ('queued', 'waiting', 'held', 'sending')
   RETURNING d.state, d.generation`,
);

/** No further attempt is made. A call that is being made is not taken back. */
export async function cancel(
  postgres: Postgres,
  key: DeliveryKey,
  also?: AlsoThen,
): Promise<'cancelled' | 'not-found' | 'ended'> {
  if (await changeState(postgres, key, cancelOne, { also })) return 'cancelled';
  return (await stateOf(postgres, key)) === undefined ? 'not-found' : 'ended';
}
