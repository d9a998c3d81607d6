import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/*
 * A digest says which marks a block of notifications has (src/digests). It is written once they are old enough that no
 * more can come; whatever changes one of them afterwards has its digest written anew.
 */

/** A transaction that writes digests holds this from before it reads what they are made of, to its end. */
export const lockDigests = statement('lock-digests', `SELECT pg_advisory_xact_lock(${advisoryLocks.digests})`);
const shareDigests = statement('share-digests', `SELECT pg_advisory_xact_lock_shared(${advisoryLocks.digests})`);

const outdate = statement(
  'outdate-digests',
  `UPDATE digest SET bits = NULL, is_stale = true
   WHERE NOT is_stale AND from_id IN (
     SELECT d.from_id FROM unnest($ids::uuid[]) AS changed (id)
     CROSS JOIN LATERAL (SELECT from_id, to_id FROM digest WHERE from_id <= changed.id ORDER BY from_id DESC LIMIT 1) d
     WHERE d.to_id >= changed.id
   )`,
);

/**
 * These notifications get other content, or a delivery for one more subscription, in this transaction: a search finds
 * them by that as soon as it is committed.
 */
export async function outdateDigests(query: Query, notificationIds: readonly string[]): Promise<void> {
  await query(shareDigests);
  await query(outdate, { ids: notificationIds });
}
