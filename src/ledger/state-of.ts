import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { DeliveryKey, DeliveryState } from './delivery.js';

const findState = statement(
  'state-of',
  'SELECT state FROM delivery WHERE notification_id = $notification AND subscription_id = $subscription',
);

/** @returns undefined for a delivery that there is not */
export async function stateOf(postgres: Postgres, key: DeliveryKey): Promise<DeliveryState | undefined> {
  const values = { notification: key.notificationId, subscription: key.subscriptionId };
  const [row] = await postgres.query<{ state: DeliveryState }>(findState, values);
  return row?.state;
}
