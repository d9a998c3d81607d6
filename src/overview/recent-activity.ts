import { minutes, readSeries, readSeriesTogether, readTotals, tens } from '../activity/activity-rows.js';
import { quantileOf } from '../activity/steps.js';
import type { Counts } from '../activity/tally.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { OverviewAnswer } from './overview-io.js';
import { beginOf, bucketsFrom, countedUntil, sumOf } from './spans.js';

const all = { kind: 'all', id: '' } as const;
const lastMinute = { bucketSeconds: tens.seconds, buckets: 6 };
/** Whole minutes, and the one that is not over. */
const lastMinutes = { bucketSeconds: minutes.seconds, buckets: 5 };
const lastHour = { bucketSeconds: minutes.seconds, buckets: 61 };
/** More than there are steps of time. */
const mostSteps = 200;

/** @param now milliseconds since 1970, by the ledger's clock */
export async function readRecentActivity(
  postgres: Postgres,
  now: number,
): Promise<NonNullable<OverviewAnswer['activity']>> {
  const until = countedUntil(now);
  const thisMinute = beginOf(until, minutes.seconds);
  const minuteAgo = until - 60_000;
  const hourAgo = thisMinute - (lastHour.buckets - 1) * 60_000;
  const minutesAgo = thisMinute - (lastMinutes.buckets - 1) * 60_000;
  const [byTens, [byMinutes, byFetching], took] = await Promise.all([
    readSeries(postgres, all, tens.seconds, minuteAgo),
    readSeriesTogether(postgres, ['all', 'fetched'], all.id, minutes.seconds, hourAgo),
    readTotals(postgres, 'took', minutes.seconds, minutesAgo, '', mostSteps),
  ]);
  const within = (counted: ReadonlyMap<number, Counts>, from: number, to: number) =>
    sumOf([...counted].filter(([at]) => at >= from && at < to).map(([, counts]) => counts));
  const recent = within(byMinutes!, minutesAgo, Infinity);
  // Counts are estimates: whatever was lost or counted twice, the share is one.
  const byCalls = Math.max(0, recent.delivered - within(byFetching!, minutesAgo, Infinity).delivered);
  const calls = byCalls + recent.failedAttempts;
  const steps = new Map(took.map(({ id, counts }) => [Number(id), counts.delivered]));
  return {
    countedUntil: new Date(until).toISOString(),
    lastMinute: { seconds: lastMinute.buckets * tens.seconds, ...within(byTens, minuteAgo, until) },
    lastMinutes: {
      seconds: (until - minutesAgo) / 1000,
      ...recent,
      successRate: calls === 0 ? null : byCalls / calls,
      deliveryP50Ms: quantileOf(steps, 0.5) ?? null,
      deliveryP95Ms: quantileOf(steps, 0.95) ?? null,
    },
    lastHour: bucketsFrom(hourAgo, lastHour, byMinutes!),
  };
}
