import type { EntityManager } from 'typeorm';
import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { samePlace } from './line-up.js';
import { notedIn } from './noted.js';

/*
 * A subscription that keeps order no more may have much in line. As when it ends (end-of-subscription.ts), the
 * transaction that changes it only notes that, and a rule of the dispatcher frees what is in line, in batches. The
 * deliveries that have the turn go on; the few that line up at that very moment are passed the turn as before. While an
 * operator has what is held dropped (drop-held.ts), its line is not freed: what is freed then would be held anew by its
 * worker, and not be dropped any more.
 */

/** Runs in the transaction that changes the subscriptions, which has that version of the catalogue. */
export async function noteOrderEndings(
  manager: EntityManager,
  subscriptionIds: readonly string[],
  version: number,
): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query(
    `INSERT INTO order_ending (subscription_id, version) SELECT id, $2 FROM unnest($1::uuid[]) AS ended (id) ORDER BY id
     ON CONFLICT (subscription_id) DO UPDATE SET version = EXCLUDED.version`,
    [subscriptionIds, version],
  );
}

/** Runs in the transaction that has subscriptions keep order: what is in line stays there. */
export async function withdrawOrderEndings(manager: EntityManager, subscriptionIds: readonly string[]): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query('DELETE FROM order_ending WHERE subscription_id = ANY ($1::uuid[])', [subscriptionIds]);
}

const isDropping = 'EXISTS (SELECT FROM held_drop WHERE subscription_id = $subscription)';

interface NotedOrderEnding {
  subscriptionId: string;
  version: string;
}

export const findOrderEndings = notedIn('orders-ending', 'order_ending', 'version');

/** Subscriptions that keep order no more, and whose line is still to be freed; some of them if there are many. */
export async function readOrderEndings(
  postgres: Postgres,
  limit: number,
  after: string | null = null,
): Promise<NotedOrderEnding[]> {
  const rows = await postgres.query<{ subscription_id: string; version: string }>(findOrderEndings, { limit, after });
  return rows.map((row) => ({ subscriptionId: row.subscription_id, version: row.version }));
}

// Looks whether the order is still to end in the same snapshot: see end-of-subscription.ts. The order is that of the
// index.
export const freeLineItems = statement(
  'free-line',
  `WITH freed AS MATERIALIZED (
     SELECT notification_id, subscription_id, object_key, turn_nr FROM delivery
     WHERE subscription_id = $subscription AND state = 'held' AND held_for = 'order'
       AND EXISTS (SELECT FROM order_ending WHERE subscription_id = $subscription AND version = $version)
       AND NOT ${isDropping}
     ORDER BY object_key, turn_nr LIMIT $limit FOR UPDATE OF delivery SKIP LOCKED
   ),
   gone AS (DELETE FROM in_line l USING freed WHERE ${samePlace('freed')})
   UPDATE delivery d SET state = 'waiting', held_for = NULL, next_at = GREATEST(d.next_at, now()), object_key = NULL, turn_nr = NULL
   FROM freed WHERE ${sameDelivery('freed')}`,
);

/** Some of the deliveries in line are due at once. @returns how many */
export async function freeLine(postgres: Postgres, ending: NotedOrderEnding, limit: number): Promise<number> {
  return postgres.affected(freeLineItems, { subscription: ending.subscriptionId, version: ending.version, limit });
}

const forgetItem = statement(
  'forget-order-ending',
  `DELETE FROM order_ending WHERE subscription_id = $subscription AND version = $version AND NOT ${isDropping}`,
);

/** All that was in line is freed, unless some of it is still being dropped. */
export async function forgetOrderEnding(postgres: Postgres, ending: NotedOrderEnding): Promise<void> {
  await postgres.query(forgetItem, { subscription: ending.subscriptionId, version: ending.version });
}
