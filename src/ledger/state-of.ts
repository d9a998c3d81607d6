import type { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryKey, DeliveryState, HeldReason } from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, perDay } from './per-day.js';

export const findState = perDay(
  'state-of',
  (of) =>
    `SELECT state, held_for FROM ${of('delivery')} WHERE notification_id = $notification AND subscription_id = $subscription`,
);

interface StateRow extends Record<string, unknown> {
  state: DeliveryState;
  held_for: HeldReason | null;
}

interface StateKnown {
  state: DeliveryState;
  /** Null where it is not held. */
  heldFor: HeldReason | null;
}

/** @returns undefined for a delivery that there is not */
export async function stateOf(postgres: Postgres, key: DeliveryKey): Promise<StateKnown | undefined> {
  const values = { notification: key.notificationId, subscription: key.subscriptionId };
  const [row] = await onDay(postgres.query<StateRow>(findState(dayOfId(key.notificationId)), values), []);
  // One that was released keeps its reason.
  return row && { state: row.state, heldFor: row.state === 'held' ? row.held_for : null };
}
