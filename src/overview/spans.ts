import { hours, minutes, tens } from '../activity/activity-rows.js';
import { noCounts, type Counts } from '../activity/tally.js';

/** How far back is shown, and in buckets of how many seconds. */
export const spans = {
  '1h': { bucketSeconds: minutes.seconds, buckets: 60 },
  '24h': { bucketSeconds: hours.seconds, buckets: 24 },
  '7d': { bucketSeconds: hours.seconds, buckets: 168 },
} as const;
export type SpanName = keyof typeof spans;
export const spanNames = Object.keys(spans) as [SpanName, ...SpanName[]];

export interface Bucket extends Counts {
  /** Its beginning. */
  at: string;
}

/** The beginning of the bucket that this time is in. All in milliseconds since 1970. */
export const beginOf = (time: number, bucketSeconds: number): number =>
  Math.floor(time / (bucketSeconds * 1000)) * bucketSeconds * 1000;

/** Every process adds what it has counted when a bucket ends; by so much later all have, unless one is overloaded. */
const addedWithinMs = 2000;

/** All that happened before is added, as a rule. */
export const countedUntil = (now: number): number => beginOf(now - addedWithinMs, tens.seconds);

/** The beginning of the first of the buckets that end with the one of `now`. */
export const firstOf = (now: number, { bucketSeconds, buckets }: { bucketSeconds: number; buckets: number }): number =>
  beginOf(now, bucketSeconds) - (buckets - 1) * bucketSeconds * 1000;

/** One after the other, without a gap: where nothing was counted there are zeros. */
export function bucketsFrom(
  from: number,
  { bucketSeconds, buckets }: { bucketSeconds: number; buckets: number },
  counted: ReadonlyMap<number, Counts>,
): Bucket[] {
  return Array.from({ length: buckets }, (_, nr) => {
    const at = from + nr * bucketSeconds * 1000;
    return { at: new Date(at).toISOString(), ...(counted.get(at) ?? noCounts()) };
  });
}

export function sumOf(counts: Iterable<Counts>): Counts {
  const sum = noCounts();
  for (const each of counts) for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += each[name];
  return sum;
}
