import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { Counts, Tallied, TallyKind } from './tally.js';

/** Lengths of buckets, and how long those are kept. */
export const tens = { seconds: 10, keptSeconds: 600 };
export const minutes = { seconds: 60, keptSeconds: 7200 };
export const hours = { seconds: 3600, keptSeconds: 8 * 86_400 };
export const granularities = [tens, minutes, hours] as const;

const tallied = rowsOf<Tallied>('tallied', {
  kind: ['text', ({ kind }) => kind],
  id: ['text', ({ id }) => id],
  accepted: ['float8', ({ counts }) => counts.accepted],
  duplicates: ['float8', ({ counts }) => counts.duplicates],
  delivered: ['float8', ({ counts }) => counts.delivered],
  failed_attempts: ['float8', ({ counts }) => counts.failedAttempts],
  gave_up: ['float8', ({ counts }) => counts.gaveUp],
  fetched: ['float8', ({ fetched }) => fetched ?? 0],
});

const columns = ['accepted', 'duplicates', 'delivered', 'failed_attempts', 'gave_up'];

/**
 * Each is counted in every length of buckets that is read of its kind. In the order of the key: several processes do it
 * at once. Times that lie ahead were written before Postgres' clock was set back: what is counted now is the last. The
 * last delivery is that of the last call that succeeded: one that was fetched says nothing of the receiver.
 */
export const addItems = statement(
  'add-activity',
  `INSERT INTO activity (bucket_seconds, kind, id, at, ${columns.join(', ')}, last_at, last_delivered_at)
   SELECT seconds, kind, id, to_timestamp(floor($at_ms::float8 / 1000 / seconds) * seconds), ${columns.join(', ')},
     to_timestamp($at_ms::float8 / 1000), CASE WHEN delivered > fetched THEN to_timestamp($at_ms::float8 / 1000) END
   FROM ${tallied.from} JOIN unnest(ARRAY[${granularities.map(({ seconds }) => seconds).join(', ')}]) AS seconds ON CASE kind
     WHEN 'all' THEN true WHEN 'took' THEN seconds = ${minutes.seconds} WHEN 'fetched' THEN seconds = ${minutes.seconds} ELSE seconds >= ${minutes.seconds}
   END
   ORDER BY seconds, kind COLLATE "C", id COLLATE "C"
   ON CONFLICT (bucket_seconds, kind, id, at) DO UPDATE SET
     ${columns.map((column) => `${column} = activity.${column} + EXCLUDED.${column}`).join(', ')},
     last_at = LEAST(GREATEST(activity.last_at, EXCLUDED.last_at), now()),
     last_delivered_at = LEAST(GREATEST(activity.last_delivered_at, EXCLUDED.last_delivered_at),
       CASE WHEN EXCLUDED.last_delivered_at IS NOT NULL THEN now() END)`,
);

/** @param at milliseconds since 1970, by the ledger's clock: when it happened, about */
export const addActivity = (query: Query, items: readonly Tallied[], at: number): Promise<unknown> =>
  query(addItems, { ...tallied.bind(items), at_ms: at });

/** Buckets that lie ahead were counted before Postgres' clock was set back: they would count as if it were just now. */
const untilNow = 'at <= now()';

export const findSeries = statement(
  'activity-series',
  `SELECT kind, (extract(epoch FROM at) * 1000)::float8 AS at_ms, ${columns.map((column) => `${column}::float8`).join(', ')}
   FROM activity
   WHERE bucket_seconds = $seconds AND kind = ANY ($kinds::text[]) AND id = $id AND at >= to_timestamp($from_ms::float8 / 1000) AND ${untilNow}`,
);

interface CountRow {
  accepted: number;
  duplicates: number;
  delivered: number;
  failed_attempts: number;
  gave_up: number;
}

const countsOf = (row: CountRow): Counts => ({
  accepted: row.accepted,
  duplicates: row.duplicates,
  delivered: row.delivered,
  failedAttempts: row.failed_attempts,
  gaveUp: row.gave_up,
});

/** Of what. */
export interface Subject {
  kind: TallyKind;
  id: string;
}

/**
 * @returns by the beginning of the bucket, in milliseconds since 1970; those in which nothing happened are not there
 */
export async function readSeries(
  postgres: Postgres,
  { kind, id }: Subject,
  seconds: number,
  from: number,
): Promise<ReadonlyMap<number, Counts>> {
  const [series] = await readSeriesTogether(postgres, [kind], id, seconds, from);
  return series!;
}

/** Of each of these kinds, as they were at one moment: they may be compared. */
export async function readSeriesTogether(
  postgres: Postgres,
  kinds: readonly TallyKind[],
  id: string,
  seconds: number,
  from: number,
): Promise<ReadonlyMap<number, Counts>[]> {
  const values = { seconds, kinds, id, from_ms: from };
  const rows = await postgres.queryAside<CountRow & { kind: TallyKind; at_ms: number }>(findSeries, values);
  return kinds.map((of) => new Map(rows.filter(({ kind }) => kind === of).map((row) => [row.at_ms, countsOf(row)])));
}

const totalsWhere = (ids: string) =>
  `SELECT id, ${columns.map((column) => `sum(${column})::float8 AS ${column}`).join(', ')}, max(last_at) AS last_at
   FROM activity
   WHERE bucket_seconds = $seconds AND kind = $kind AND ${ids} AND at >= to_timestamp($from_ms::float8 / 1000) AND ${untilNow}
   GROUP BY id ORDER BY id`;

/** In the order of the key, so that a page ends where it is full. */
export const findTotals = statement('activity-totals', `${totalsWhere('id > $after')} LIMIT $limit`);
/** Of these ids alone: there are no pages. */
export const findTotalsOf = statement('activity-totals-of', totalsWhere('id = ANY ($ids::text[])'));

export interface Total {
  id: string;
  counts: Counts;
  /** When something was last counted, to ten seconds. */
  lastAt: Date;
}

type TotalRow = CountRow & { id: string; last_at: Date };

const totalOf = (row: TotalRow): Total => ({ id: row.id, counts: countsOf(row), lastAt: row.last_at });

/** @param after the id that the page before ended with; empty: the first page */
export async function readTotals(
  postgres: Postgres,
  kind: TallyKind,
  seconds: number,
  from: number,
  after: string,
  limit: number,
): Promise<Total[]> {
  const values = { seconds, kind, after, from_ms: from, limit };
  return (await postgres.queryAside<TotalRow>(findTotals, values)).map(totalOf);
}

/** @param ids a hundred at most */
export async function readTotalsOf(
  postgres: Postgres,
  kind: TallyKind,
  seconds: number,
  from: number,
  ids: readonly string[],
): Promise<Total[]> {
  const values = { seconds, kind, ids, from_ms: from };
  return (await postgres.queryAside<TotalRow>(findTotalsOf, values)).map(totalOf);
}

/**
 * Buckets that begin further ahead than the clocks of processes differ were counted before Postgres' clock was set
 * back. Two looks into the index `activity_at`, in place of one through all of the buckets.
 */
export const sweepItems = statement(
  'sweep-activity',
  `DELETE FROM activity WHERE ctid = ANY (ARRAY(
     (SELECT ctid FROM activity
      WHERE bucket_seconds = $seconds AND at < now() - $kept_seconds * interval '1 s' LIMIT $limit)
     UNION ALL
     (SELECT ctid FROM activity WHERE bucket_seconds = $seconds AND at > now() + interval '1 hour' LIMIT $limit)
     LIMIT $limit
   ))`,
);

/**
 * Upkeep: removes what is kept no longer, and what lies ahead, up to `limit` buckets of each length.
 * @returns how many of the length with most
 */
export async function sweepActivity(postgres: Postgres, limit: number): Promise<number> {
  let most = 0;
  for (const { seconds, keptSeconds } of granularities)
    most = Math.max(most, await postgres.affected(sweepItems, { seconds, kept_seconds: keptSeconds, limit }));
  return most;
}
