import type { Query } from '../infra/postgres/postgres.js';
import { dayMs, dayOfId, lowestIdAt } from '../ledger/partitions.js';
import { perDay } from '../ledger/per-day.js';
import type { TextVersion } from '../ledger/text-versions.js';
import { aboutValues, isAbout } from './main-object.js';

/** Found by one step, at most: each of them may have many deliveries to cancel. */
const mostFound = 100;

/**
 * Of bodies that one step reads; the last one may go beyond it. Thousands of a megabyte each would take longer than a
 * statement may, each time anew.
 */
const mostBytes = 4 * 1024 * 1024;

export const findAbout = perDay(
  'notifications-about',
  (of) => `
    WITH page AS MATERIALIZED (
      SELECT id, version, body, looked FROM (
        SELECT id, version, body, count(*) OVER () AS looked, sum(bytes) OVER (ORDER BY id) - bytes AS bytes_before
        FROM (
          SELECT id, xmin::text AS version, body, coalesce(octet_length(body), 0) AS bytes FROM ${of('notification')}
          WHERE id > $reached ORDER BY id LIMIT $limit
        ) next
      ) sized WHERE bytes_before < ${mostBytes}
    ),
    found AS MATERIALIZED (SELECT id, version FROM page WHERE body IS NOT NULL AND ${isAbout} ORDER BY id LIMIT ${mostFound})
    SELECT (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last,
      (SELECT count(*) < $limit AND count(*) = coalesce(max(looked), 0) FROM page) AS is_end,
      ARRAY(SELECT id FROM found ORDER BY id) AS ids, ARRAY(SELECT version FROM found ORDER BY id) AS versions`,
);

interface AboutRow {
  last: string | null;
  /** There are no more on that day. */
  is_end: boolean;
  ids: string[];
  versions: string[];
}

export interface WalkStep {
  day: number;
  ids: string[];
  /** By which they were found: with another one a notification may be about something else. */
  texts?: TextVersion[];
  reached: string;
  isOver: boolean;
}

/**
 * A step through the notifications of the ledger, in the order of their ids, for those about a main object.
 * @param days whose tables there are, in their order
 * @param limit notifications that are looked at, at most: fewer where their bodies are large
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
  const [page] = await query<AboutRow>(findAbout(day), {
    ...aboutValues(mainObject),
    reached: from,
    limit,
  });
  const { last, is_end: isEnd, ids, versions } = page!;
  const found = { day, ids, texts: ids.map((id, nr) => ({ id, version: versions[nr]! })) };
  if (ids.length === mostFound) return { ...found, reached: ids.at(-1)!, isOver: false };
  if (!isEnd) return { ...found, reached: last!, isOver: false };
  return { ...found, reached: lowestIdAt((day + 1) * dayMs), isOver: day === days.at(-1) };
}
