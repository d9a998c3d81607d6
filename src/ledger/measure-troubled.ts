import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { deadStates, isDead } from './delivery.js';

/** Of what ended or failed last, and of what is held: so many deliveries, or subscriptions, are looked at. */
const sampled = 1000;
/** Of each kind of trouble, the subscriptions that have most of it in the sample. */
const candidates = 20;
/** Of each of these, no more are counted. */
const mostCountedEach = 1000;

export interface Troubled {
  subscriptionId: string;
  /** Waiting or held, counted up to 1000. */
  unsent: number;
  /** Failed, expired or unknown, counted up to 1000. */
  dead: number;
}

const newest = (state: string): string =>
  `(SELECT subscription_id FROM delivery WHERE state = '${state}' ORDER BY notification_id DESC LIMIT $sampled)`;

const most = (source: string): string =>
  `(SELECT subscription_id FROM ${source} AS s GROUP BY subscription_id ORDER BY count(*) DESC, subscription_id LIMIT $candidates)`;

/**
 * Subscriptions with the newest dead letters, with failures that are repeated next, or with deliveries that are held.
 */
export const candidatesItems = statement(
  'troubled-candidates',
  `SELECT DISTINCT subscription_id FROM (
     ${most(`(${deadStates.map(newest).join(' UNION ALL ')})`)}
     UNION ALL
     ${most(`(SELECT subscription_id FROM (
       SELECT subscription_id, failures FROM delivery WHERE state = 'waiting' ORDER BY next_at LIMIT $sampled
     ) AS next WHERE failures > 0)`)}
     UNION ALL
     (SELECT subscription_id FROM (SELECT subscription_id, is_backlog, held_at FROM held_subscription LIMIT $sampled) AS held
      ORDER BY is_backlog DESC, held_at DESC LIMIT $candidates)
   ) AS c`,
);

const upTo = (condition: string): string =>
  `(SELECT count(*) FROM (
     SELECT FROM delivery d WHERE d.subscription_id = s.subscription_id AND ${condition} LIMIT $most
   ) AS c)::int`;

// The conditions are those of the indexes by subscription.
export const countTroubledItems = statement(
  'count-troubled',
  `SELECT subscription_id, ${upTo("d.state BETWEEN 'waiting' AND 'held' AND d.subscription_id IS NOT NULL")} AS unsent,
     ${upTo(isDead('d'))} AS dead
   FROM unnest($subscriptions::uuid[]) AS s (subscription_id)`,
);

/** Up to `limit` subscriptions with most that is unsent or dead. */
export async function measureTroubled(postgres: Postgres, limit: number): Promise<Troubled[]> {
  const found = await postgres.query<{ subscription_id: string }>(candidatesItems, { sampled, candidates });
  if (found.length === 0) return [];
  const rows = await postgres.query<{ subscription_id: string; unsent: number; dead: number }>(countTroubledItems, {
    subscriptions: found.map((row) => row.subscription_id),
    most: mostCountedEach,
  });
  return rows
    .map((row) => ({ subscriptionId: row.subscription_id, unsent: row.unsent, dead: row.dead }))
    .filter(({ unsent, dead }) => unsent + dead > 0)
    .sort((one, other) => other.unsent + other.dead - one.unsent - one.dead)
    .slice(0, limit);
}
