import type { Query } from '../infra/postgres/postgres.js';
import { dayMs, dayOfId, lowestIdAt } from '../ledger/partitions.js';
import { perDay } from '../ledger/per-day.js';
import { aboutValues, isAbout } from './main-object.js';

/** Found by one step, at most: each of them may have many deliveries to cancel. */
const mostFound = 100;

export const findAbout = perDay(
  'notifications-about',
  (of) => `
    WITH page AS MATERIALIZED (
      SELECT id, body FROM ${of('notification')} WHERE id > $reached ORDER BY id LIMIT $limit
    ),
    found AS MATERIALIZED (SELECT id FROM page WHERE body IS NOT NULL AND ${isAbout} ORDER BY id LIMIT ${mostFound})
    SELECT (SELECT count(*)::int FROM page) AS rows, (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
      ARRAY(SELECT id FROM found ORDER BY id) AS ids`,
);

export interface WalkStep {
  day: number;
  ids: string[];
  reached: string;
  isOver: boolean;
}

/**
 * A step through the notifications of the ledger, in the order of their ids, for those about a main object.
 * @param days whose tables there are, in their order
 * @param limit notifications that are looked at
 */
export async function stepThrough(
  query: Query,
  mainObject: string,
  reached: string,
  { days, limit }: { days: readonly number[]; limit: number },
): Promise<WalkStep> {
  const day = days.find((candidate) => candidate >= dayOfId(reached));
  if (day === undefined) return { day: 0, ids: [], reached, isOver: true };
  const from = reached > lowestIdAt(day * dayMs) ? reached : lowestIdAt(day * dayMs);
  const [page] = await query<{ rows: number; last: string | null; ids: string[] }>(findAbout(day), {
    ...aboutValues(mainObject),
    reached: from,
    limit,
  });
  const { rows, last, ids } = page!;
  if (ids.length === mostFound) return { day, ids, reached: ids.at(-1)!, isOver: false };
  if (rows === limit) return { day, ids, reached: last!, isOver: false };
  return { day, ids, reached: lowestIdAt((day + 1) * dayMs), isOver: day === days.at(-1) };
}
