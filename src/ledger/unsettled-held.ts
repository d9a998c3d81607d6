import type { Postgres } from '../infra/postgres/postgres.js';
import { statement, type Statement } from '../infra/postgres/statement.js';
import { lowestId } from './partitions.js';
import { isReleasedStill } from './release.js';

/** Subscriptions that are looked at together. */
const pageSize = 1000;

export const readNotPausedItems = statement(
  'read-not-paused',
  `SELECT subscription_id, EXISTS (
     SELECT FROM subscription
     WHERE id = s.subscription_id AND paused_at IS NOT NULL AND deleted_at IS NULL AND disabled_at IS NULL
   ) AS is_paused
   FROM (SELECT subscription_id FROM held_subscription WHERE subscription_id > $after ORDER BY subscription_id LIMIT $limit) s
   ORDER BY subscription_id`,
);

/**
 * The subscriptions that have deliveries held, or had lately, but for those that are paused by now: some at a time, of
 * which a page may have none.
 */
export async function* readNotPaused(postgres: Postgres, limit = pageSize): AsyncGenerator<string[]> {
  let after: string = lowestId;
  for (;;) {
    const rows = await postgres.query<{ subscription_id: string; is_paused: boolean }>(readNotPausedItems, {
      after,
      limit,
    });
    yield rows.filter((row) => !row.is_paused).map((row) => row.subscription_id);
    if (rows.length < limit) return;
    after = rows.at(-1)!.subscription_id;
  }
}

/** Looks at one subscription after the other, and no further than the first that has one. */
const anyOf = (name: string, condition: string): Statement =>
  statement(
    name,
    `SELECT EXISTS (
       SELECT FROM unnest($subscriptions::uuid[]) AS s (id)
       WHERE (SELECT d.subscription_id FROM delivery d WHERE d.subscription_id = s.id AND ${condition} LIMIT 1) IS NOT NULL
     ) AS yes`,
  );

/** The conditions are those of the indexes by subscription, as in the statement that releases. */
export const anyHeldItems = anyOf('any-held', "d.state = 'held' AND d.held_for <> 'order'");
export const anyReleasedItems = anyOf('any-released', isReleasedStill('d'));

/** Whether one of these has a delivery that is held, but for its order. */
export const anyHeld = (postgres: Postgres, subscriptionIds: readonly string[]): Promise<boolean> =>
  ask(postgres, anyHeldItems, subscriptionIds);

/** Whether one of these has a delivery that was released, and is not settled. */
export const anyReleased = (postgres: Postgres, subscriptionIds: readonly string[]): Promise<boolean> =>
  ask(postgres, anyReleasedItems, subscriptionIds);

async function ask(postgres: Postgres, item: Statement, subscriptionIds: readonly string[]): Promise<boolean> {
  if (subscriptionIds.length === 0) return false;
  const [row] = await postgres.query<{ yes: boolean }>(item, { subscriptions: subscriptionIds });
  return row!.yes;
}
