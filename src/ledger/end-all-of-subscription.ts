import type { EntityManager } from 'typeorm';

/**
 * One for each index of unfinished deliveries: a condition on all of them at once would be served by none. A delivery that
 * is handed out between two of them is missed, and ended by the worker that finds its subscription gone.
 */
const unsent = ["state = 'queued'", "state IN ('waiting', 'held')"];
const unfinished = ["state = 'sending'", ...unsent];

/** `$1`: id of the subscription. */
export const cancelItems = unfinished.map(
  (condition) =>
    `UPDATE delivery SET
       state = 'cancelled', next_at = NULL, process = NULL, generation = generation + 1, ended_at = now()
     WHERE subscription_id = $1 AND ${condition}`,
);

/** `$1`: id of the subscription. */
export const failItems = unsent.map(
  (condition) =>
    `UPDATE delivery SET
       state = 'failed', next_at = NULL, process = NULL, generation = generation + 1, ended_at = now(),
       last_error = 'the subscription was disabled: its receiver answered 410 Gone'
     WHERE subscription_id = $1 AND ${condition}`,
);

/** Runs in the transaction that deletes the subscription. */
export async function cancelAllOfSubscription(manager: EntityManager, subscriptionId: string): Promise<void> {
  for (const text of cancelItems) await manager.query(text, [subscriptionId]);
}

/** Runs in the transaction that disables the subscription. A call that is being made may still succeed. */
export async function failAllOfSubscription(manager: EntityManager, subscriptionId: string): Promise<void> {
  for (const text of failItems) await manager.query(text, [subscriptionId]);
}
