import type { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryKey, DeliveryState } from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, perDay } from './per-day.js';

export const findState = perDay(
  'state-of',
  (of) =>
    `SELECT state FROM ${of('delivery')} WHERE notification_id = $notification AND subscription_id = $subscription`,
);

/** @returns undefined for a delivery that there is not */
export async function stateOf(postgres: Postgres, key: DeliveryKey): Promise<DeliveryState | undefined> {
  const values = { notification: key.notificationId, subscription: key.subscriptionId };
  const found = postgres.query<{ state: DeliveryState }>(findState(dayOfId(key.notificationId)), values);
  const [row] = await onDay(found, []);
  return row?.state;
}
