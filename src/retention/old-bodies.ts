import { perDay } from '../ledger/per-day.js';

/** A part of a walk through a day, in the order of the ids: those past their retention, finished or not. */
export const findOldBodies = perDay(
  'old-bodies',
  (of) => `
    WITH page AS MATERIALIZED (
      SELECT id, channel = ANY ($channels::text[]) AND body IS NOT NULL AS is_due FROM ${of('notification')}
      WHERE id > $reached ORDER BY id LIMIT $limit
    )
    SELECT count(*)::int AS rows, (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS reached,
      coalesce(array_agg(id) FILTER (WHERE is_due), '{}') AS due
    FROM page`,
);

export interface OldBodies {
  rows: number;
  reached: string | null;
  due: string[];
}
