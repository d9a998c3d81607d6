import { perDay } from '../ledger/per-day.js';
import { unfinished } from '../ledger/erase-bodies.js';

const isUnfinished = (of: string, id: string) =>
  `EXISTS (SELECT FROM ${of} d WHERE d.notification_id = ANY (ARRAY[${id}]) AND d.${unfinished})`;

/** A part of a walk through a day, in the order of the ids: what is to be erased, and what has to be kept for now. */
export const findOldBodies = perDay(
  'old-bodies',
  (of) => `
    WITH page AS MATERIALIZED (
      SELECT id, channel = ANY ($channels::text[]) AND body IS NOT NULL AS is_due FROM ${of('notification')}
      WHERE id > $reached ORDER BY id LIMIT $limit
    ),
    judged AS (SELECT id, is_due, is_due AND ${isUnfinished(of('delivery'), 'page.id')} AS is_kept FROM page)
    SELECT count(*)::int AS rows, (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS reached,
      coalesce(array_agg(id) FILTER (WHERE is_due AND NOT is_kept), '{}') AS due,
      coalesce(array_agg(id) FILTER (WHERE is_kept), '{}') AS kept
    FROM judged`,
);

export interface OldBodies {
  rows: number;
  reached: string | null;
  due: string[];
  kept: string[];
}

/** Of notifications that were kept, those of which every delivery has ended. */
export const findEnded = perDay(
  'kept-bodies-ended',
  (of) => `SELECT id FROM unnest($ids::uuid[]) AS kept (id) WHERE NOT ${isUnfinished(of('delivery'), 'kept.id')}`,
);
