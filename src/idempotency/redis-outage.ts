import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/** Milliseconds; what each of them is for is in docs/decisions/0022. */
export const outageTimes = {
  /** A process reports Redis when none of its writes has succeeded for this long. */
  reportAfter: 2000,
  lookEvery: 1000,
  /** A process gives no lock on what it saw longer ago. Less than `pause`. */
  believed: 3000,
  /** Between the last lock in one store and the first in the other. */
  pause: 4000,
  /** Locks return to Redis when no process has reported it for this long. */
  calm: 10_000,
  /** Each outage that follows closely on another doubles `calm`, up to this. */
  longestCalm: 600_000,
};

/** Where locks are, as all processes see it at the same time. */
export interface StoreInUse {
  store: 'redis' | 'postgres';
  /** Locks are given. If not, processes are still bringing the locks that they hold to this store. */
  isOpen: boolean;
  /** Postgres has locks or seals that have not expired. */
  hasKeysInPostgres: boolean;
}

/**
 * One that begins later than now is over: Postgres' clock was set back. No process would give a lock until the clock is
 * where it was; and those that see another store than before wait a while by themselves. Not one that a statement has
 * just begun, and looks at by a moment before that.
 */
const isOver = (outage: string) => `${outage}.began_at > moment + interval '1 minute'`;

/**
 * `moment`: the statement's own time, not the transaction's, so that waiting for a row does not count. The last expiry
 * is one step in the index, whatever the planner believes of how many have expired.
 */
const answerFrom = (outage: string): string => `
  SELECT
    CASE WHEN moment < ends_at AND NOT ${isOver(outage)} THEN 'postgres' ELSE 'redis' END AS store,
    coalesce(${isOver(outage)} OR moment >= CASE WHEN moment < ends_at THEN began_at ELSE ends_at END + $pause * interval '1 ms', true) AS is_open,
    coalesce((SELECT expires_at FROM idempotency_key ORDER BY expires_at DESC LIMIT 1) > now(), false) AS has_keys_in_postgres
  FROM (SELECT clock_timestamp() AS moment) clock LEFT JOIN ${outage} ON true`;

export const lookAtOutage = statement('look-at-redis-outage', answerFrom('redis_outage'));

/** Begins an outage, or makes the present one last for as long as Redis must be calm. */
const reportOutage = statement(
  'report-redis-outage',
  `
    WITH reported AS (
      INSERT INTO redis_outage AS o (began_at, ends_at, calm_ms)
      VALUES (clock_timestamp(), clock_timestamp() + $calm * interval '1 ms', $calm)
      ON CONFLICT (singleton) DO UPDATE SET (began_at, ends_at, calm_ms) = (
        SELECT CASE WHEN moment < o.ends_at AND NOT ${isOver('o')} THEN o.began_at ELSE moment END, moment + next_calm_ms * interval '1 ms', next_calm_ms
        FROM (
          SELECT moment, CASE
            WHEN moment < o.ends_at THEN o.calm_ms
            WHEN moment < o.ends_at + 10 * o.calm_ms * interval '1 ms' THEN LEAST(2 * o.calm_ms, $longest_calm)
            ELSE $calm END AS next_calm_ms
          FROM (SELECT clock_timestamp() AS moment) clock
        ) calm
      )
      RETURNING began_at, ends_at
    )
    ${answerFrom('reported')}`,
);

/** The store that all processes agree on now; with `report`, after this one has said that it cannot use Redis. */
export async function storeInUse(postgres: Postgres, times = outageTimes, report = false): Promise<StoreInUse> {
  const { pause, calm, longestCalm } = times;
  const [row] = await postgres.query<{ store: StoreInUse['store']; is_open: boolean; has_keys_in_postgres: boolean }>(
    report ? reportOutage : lookAtOutage,
    report ? { pause, calm, longest_calm: longestCalm } : { pause },
  );
  return { store: row!.store, isOpen: row!.is_open, hasKeysInPostgres: row!.has_keys_in_postgres };
}

/** Whether locks are in Postgres, or are about to be. For health checks. */
export async function isRedisGivenUp(postgres: Postgres): Promise<boolean> {
  const outages = await postgres.checks.query<unknown[]>(
    `SELECT FROM redis_outage WHERE began_at <= now() + interval '1 minute' AND ends_at > now()`,
  );
  return outages.length > 0;
}
