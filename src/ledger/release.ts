import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import { sameDelivery } from './delivery.js';
import { fitProbe } from './fit-probe.js';
import { handedOutColumns, readHandedOut, withText, type HandedOutRow, type HandedOutTogether } from './handed-out.js';
import { lowestId } from './partitions.js';

/** Of the deliveries that are held for a subscription: how many may be released now. */
export interface ReleaseLimit {
  subscriptionId: string;
  /** How many may be released and not yet settled. */
  window: number;
  /** How many of them this call may release. */
  limit: number;
  /** One that is a probe of their endpoint. */
  isProbe?: boolean;
}

const limits = rowsOf<ReleaseLimit>('item', {
  subscription_id: ['uuid', (item) => item.subscriptionId],
  release_window: ['int', (item) => item.window],
  most: ['int', (item) => item.limit],
  is_probe: ['bool', (item) => item.isProbe ?? false],
});

/**
 * Released and not yet settled: on its way, or claimed for its one call. An index of its own has those, and no other
 * index serves: not that of all that is queued, which may be everybody's (migrations 24 and 41).
 */
export const isReleasedStill = (delivery: string): string =>
  `${delivery}.state IN ('queued', 'sending') AND ${delivery}.held_for IS NOT NULL`;

/**
 * Releases the oldest deliveries that are held for each of these subscriptions, under a new generation; as a probe one
 * that does not expire on its way. Those that wait for their turn (`order`) are not among them. Nothing is released for
 * a subscription that is paused by now, whatever the dispatcher knows of it: what is accepted after the pause stays.
 * Deliveries held for an ended subscription go to a worker as well, which ends them.
 */
export const releaseItems = statement(
  'release',
  `
    WITH looked_at AS MATERIALIZED (
      SELECT item.subscription_id AS looked_at, item.most, item.release_window, counted.outstanding,
        CASE WHEN item.is_probe THEN (${fitProbe('item.subscription_id')}) ELSE '${lowestId}' END AS first
      FROM ${limits.from} CROSS JOIN LATERAL (
        SELECT count(*)::int AS outstanding FROM (
          SELECT FROM delivery AS d
          WHERE d.subscription_id = item.subscription_id AND ${isReleasedStill('d')}
          LIMIT item.release_window
        ) AS released_before
      ) AS counted
      WHERE NOT EXISTS (
        SELECT FROM subscription
        WHERE id = item.subscription_id AND paused_at IS NOT NULL AND deleted_at IS NULL AND disabled_at IS NULL
      )
    ),
    oldest AS MATERIALIZED (
      SELECT held.notification_id, held.subscription_id FROM looked_at AS l CROSS JOIN LATERAL (
        SELECT notification_id, subscription_id FROM delivery
        WHERE subscription_id = l.looked_at AND state = 'held' AND held_for <> 'order'
          AND notification_id >= l.first
        ORDER BY notification_id
        LIMIT GREATEST(0, LEAST(l.most, l.release_window - l.outstanding)) FOR UPDATE SKIP LOCKED
      ) AS held
    ),
    released AS (
      UPDATE delivery d SET
        state = 'queued', generation = d.generation + 1, next_at = NULL, queued_at = now(), process = $process
      FROM oldest
      WHERE ${sameDelivery('oldest')}
      RETURNING ${handedOutColumns}
    )
    ${withText('(SELECT looked_at, outstanding, released.* FROM looked_at LEFT JOIN released ON subscription_id = looked_at)')}
    ORDER BY h.notification_id`,
);

export interface Released extends HandedOutTogether {
  /** By subscription: released before, and not yet settled. One that is paused is not among them. */
  outstanding: ReadonlyMap<string, number>;
}

/** @param process whose memory the queue is; null: a broker's */
export async function release(
  postgres: Postgres,
  asked: readonly ReleaseLimit[],
  process: string | null,
): Promise<Released> {
  const rows = await postgres.query<
    { looked_at: string; outstanding: number } & (HandedOutRow | { notification_id: null })
  >(releaseItems, { ...limits.bind(asked), process });
  return {
    ...readHandedOut(rows.filter((row) => row.notification_id !== null)),
    outstanding: new Map(rows.map((row) => [row.looked_at, row.outstanding])),
  };
}
