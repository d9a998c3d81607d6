import type { EntityManager } from 'typeorm';
import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { outOfLine } from './line-up.js';
import { notedIn } from './noted.js';

/*
 * A subscription that is deleted or disabled may have a million unfinished deliveries. The transaction that changes it
 * only notes that they are to be ended, and so returns at once. A rule of the dispatcher ends those that wait, in
 * batches. Those that are queued come to a worker, which finds the subscription gone and ends them. It also ends the
 * few that the rule misses, because they were being handed out or accepted at that moment; where such a delivery is
 * held, it is released for that. A call that is being made is not taken back.
 */

/** The end of the deliveries: `cancelled` when the subscription was deleted, `failed` when it was disabled. */
export type Ending = 'cancelled' | 'failed';

/** For the operator who finds them failed. */
export const subscriptionDisabled = 'the subscription was disabled: its receiver answered 410 Gone';

/** Runs in the transaction that deletes or disables the subscriptions, which has that version of the catalogue. */
export async function noteEndings(
  manager: EntityManager,
  subscriptionIds: readonly string[],
  state: Ending,
  version: number,
): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query(
    `INSERT INTO subscription_ending (subscription_id, state, version)
     SELECT id, $2, $3 FROM unnest($1::uuid[]) AS ended (id) ORDER BY id
     ON CONFLICT (subscription_id) DO UPDATE SET state = EXCLUDED.state, version = EXCLUDED.version`,
    [subscriptionIds, state, version],
  );
}

/**
 * Runs in the transaction that enables subscriptions: deliveries that are not ended yet go on, those of before
 * included.
 */
export async function withdrawEndings(manager: EntityManager, subscriptionIds: readonly string[]): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query('DELETE FROM subscription_ending WHERE subscription_id = ANY ($1::uuid[])', [subscriptionIds]);
}

/** A subscription whose deliveries are to be ended. */
export interface NotedEnding {
  subscriptionId: string;
  state: Ending;
  version: string;
}

const findEndings = notedIn('subscriptions-ending', 'subscription_ending', 'state, version');

/** Subscriptions whose deliveries are still to be ended, some of them if there are many. */
export async function readEndings(
  postgres: Postgres,
  limit: number,
  after: string | null = null,
): Promise<NotedEnding[]> {
  const rows = await postgres.query<{ subscription_id: string; state: Ending; version: string }>(findEndings, {
    limit,
    after,
  });
  return rows.map((row) => ({ subscriptionId: row.subscription_id, state: row.state, version: row.version }));
}

// Looks whether it is still to be ended in the same snapshot: a delivery accepted after it was enabled is not in that.
// BETWEEN is the condition of the index by subscription, and not that of the index of all that is due.
export const endOfSubscriptionItems = statement(
  'end-of-subscription',
  `WITH ended AS MATERIALIZED (
     SELECT notification_id, subscription_id,
       (SELECT state FROM subscription_ending WHERE subscription_id = $subscription) AS state
     FROM delivery
     WHERE subscription_id = $subscription AND state BETWEEN 'waiting' AND 'held'
       AND EXISTS (SELECT FROM subscription_ending WHERE subscription_id = $subscription AND version = $version)
     LIMIT $limit FOR UPDATE OF delivery SKIP LOCKED
   ),
   changed AS (
     UPDATE delivery d SET
       state = ended.state, held_for = NULL, next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now(),
       last_error = CASE WHEN ended.state = 'failed' THEN '${subscriptionDisabled}'
         ELSE d.last_error END
     FROM ended
     WHERE ${sameDelivery('ended')}
     RETURNING d.subscription_id, d.object_key, d.turn_nr
   ),
   ${outOfLine('changed')}
   SELECT FROM changed`,
);

/** Ends some of the deliveries that wait. @returns how many */
export async function endDeliveries(postgres: Postgres, ending: NotedEnding, limit: number): Promise<number> {
  return postgres.affected(endOfSubscriptionItems, {
    subscription: ending.subscriptionId,
    version: ending.version,
    limit,
  });
}

const forgetEndingItem = statement(
  'forget-ending',
  'DELETE FROM subscription_ending WHERE subscription_id = $subscription AND version = $version',
);

/** All its deliveries that waited are ended. */
export async function forgetEnding(postgres: Postgres, ending: NotedEnding): Promise<void> {
  await postgres.query(forgetEndingItem, { subscription: ending.subscriptionId, version: ending.version });
}
