import type { EntityManager } from 'typeorm';
import type { Postgres } from '../infra/postgres/postgres.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { outOfLine } from './line-up.js';
import { notedIn } from './noted.js';

/*
 * A paused subscription may hold a million deliveries. An operator who has it drop them only notes which: those up to
 * the newest one that is held at that moment, and that have been held since before it. A rule of the dispatcher cancels
 * them, in batches. Until then it is not resumed, so none of them is released meanwhile. Others come to be held
 * meanwhile, though they were accepted before: those that a worker had, those that waited for another attempt, and what
 * is sent again.
 */

/**
 * Whether a row `held` of `delivery` has come to be held after a drop was noted at `notedAt`. Where its time lies
 * further ahead than that of a transaction that began a little later, it was held before Postgres' clock was set back.
 * Of what was held in the last moments before a clock was set back by as little, some may stay.
 */
export const isHeldAfter = (held: string, notedAt: string): string =>
  `(${held}.held_since > ${notedAt} AND ${held}.held_since < now() + interval '1 minute') IS TRUE`;

export const newestHeldItem = statement(
  'newest-held',
  `SELECT notification_id FROM delivery WHERE subscription_id = $subscription AND state = 'held'
   ORDER BY notification_id DESC LIMIT 1`,
);

/** @returns its notification id; undefined: nothing is held for the subscription */
export async function findNewestHeld(postgres: Postgres, subscriptionId: string): Promise<string | undefined> {
  const [row] = await postgres.query<{ notification_id: string }>(newestHeldItem, { subscription: subscriptionId });
  return row?.notification_id;
}

/**
 * Runs in a transaction that keeps the subscription paused.
 * @param upTo notification id of the newest delivery to drop
 */
export async function noteDrop(manager: EntityManager, subscriptionId: string, upTo: string): Promise<void> {
  await manager.query(
    `INSERT INTO held_drop AS h (subscription_id, up_to) VALUES ($1, $2)
     ON CONFLICT (subscription_id) DO UPDATE SET up_to = GREATEST(h.up_to, EXCLUDED.up_to), noted_at = clock_timestamp()`,
    [subscriptionId, upTo],
  );
}

const lockSubscription = statement(
  'lock-subscription',
  'SELECT FROM subscription WHERE id = $subscription FOR NO KEY UPDATE',
);

/**
 * Whether what it held is still being dropped. Nobody can have it dropped from then on, until the transaction ends that
 * resumes it; the plan of a configuration only asks. Looks in a statement of its own, which sees the drop that the lock
 * was waited for.
 */
export async function isDropping(manager: EntityManager, subscriptionId: string): Promise<boolean> {
  await queryOf(manager)(lockSubscription, { subscription: subscriptionId });
  const rows: unknown[] = await manager.query('SELECT FROM held_drop WHERE subscription_id = $1', [subscriptionId]);
  return rows.length > 0;
}

/** The held deliveries of a subscription that are to be dropped. */
export interface NotedDrop {
  subscriptionId: string;
  upTo: string;
  /** With its microseconds. */
  notedAt: string;
}

const findDrops = notedIn('held-drops', 'held_drop', 'up_to, noted_at::text AS noted_at');

/** The drops that are not done yet, some of them if there are many. */
export async function readDrops(postgres: Postgres, limit: number, after: string | null = null): Promise<NotedDrop[]> {
  type Row = { subscription_id: string; up_to: string; noted_at: string };
  const rows = await postgres.query<Row>(findDrops, { limit, after });
  return rows.map((row) => ({ subscriptionId: row.subscription_id, upTo: row.up_to, notedAt: row.noted_at }));
}

const isToDrop = `delivery.subscription_id = $subscription AND state = 'held' AND notification_id <= $up_to
       AND NOT ${isHeldAfter('delivery', '$noted_at::timestamptz')}`;

// Looks in the same snapshot whether it is still to be dropped: as long as it is noted, it is not resumed.
export const dropItems = statement(
  'drop-held',
  `WITH dropped AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE ${isToDrop}
       AND EXISTS (SELECT FROM held_drop WHERE subscription_id = $subscription)
     LIMIT $limit FOR UPDATE OF delivery SKIP LOCKED
   ),
   changed AS (
     UPDATE delivery d SET
       state = 'cancelled', held_for = NULL, next_at = NULL, process = NULL, generation = d.generation + 1, ended_at = now()
     FROM dropped
     WHERE ${sameDelivery('dropped')}
     RETURNING d.subscription_id, d.object_key, d.turn_nr
   ),
   ${outOfLine('changed')}
   SELECT FROM changed`,
);

/** Cancels some of them. @returns how many */
export async function dropHeld(postgres: Postgres, drop: NotedDrop, limit: number): Promise<number> {
  return postgres.affected(dropItems, { ...valuesOfDrop(drop), limit });
}

export const forgetDropItem = statement(
  'forget-held-drop',
  `DELETE FROM held_drop WHERE subscription_id = $subscription AND up_to = $up_to AND noted_at = $noted_at::timestamptz
     AND (SELECT notification_id FROM delivery WHERE ${isToDrop} LIMIT 1) IS NULL`,
);

/** It is done, unless one of them was locked and passed over, or more are to be dropped by now. */
export async function forgetDrop(postgres: Postgres, drop: NotedDrop): Promise<void> {
  await postgres.query(forgetDropItem, valuesOfDrop(drop));
}

const valuesOfDrop = ({ subscriptionId, upTo, notedAt }: NotedDrop) => ({
  subscription: subscriptionId,
  up_to: upTo,
  noted_at: notedAt,
});
