import type { Postgres, Query } from '../infra/postgres/postgres.js';
import type { DeliveryKey, DeliveryState } from './delivery.js';
import { dayOfId } from './partitions.js';
import { onDay, perDay, type StatementOfDay } from './per-day.js';

const lockState = perDay(
  'lock-state-of',
  (of) =>
    `SELECT state, generation FROM ${of('delivery')}
     WHERE notification_id = $notification AND subscription_id = $subscription FOR UPDATE`,
);

export interface StateInLedger extends Record<string, unknown> {
  state: DeliveryState;
  generation: number;
}

/** Runs in the transaction that changes the state of a delivery, after it did. */
export type AlsoThen = (query: Query, before: StateInLedger, after: StateInLedger) => Promise<void>;

export interface ChangeOptions {
  also?: AlsoThen | undefined;
  /** Runs in the same transaction, before the delivery is locked. */
  first?: (query: Query, day: number) => Promise<unknown>;
}

/**
 * The change of one delivery by an operator.
 * @param change returns the new state and generation; nothing where the delivery is in none that is to be changed
 * @returns whether it was changed
 */
export async function changeState(
  postgres: Postgres,
  { notificationId, subscriptionId }: DeliveryKey,
  change: StatementOfDay,
  { also, first }: ChangeOptions,
): Promise<boolean> {
  const day = dayOfId(notificationId);
  const values = { notification: notificationId, subscription: subscriptionId };
  const changed = postgres.transaction(async (query) => {
    await first?.(query, day);
    const [before] = await query<StateInLedger>(lockState(day), values);
    const [after] = await query<StateInLedger>(change(day), values);
    if (before && after) await also?.(query, before, after);
    return after !== undefined;
  });
  return onDay(changed, false);
}
