import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf } from '../infra/postgres/statement.js';
import { perDay } from './per-day.js';

/*
 * To erase a notification, all its deliveries are looked at, in statements of their own, for a minute or more, and its
 * text goes last. One that is sent again meanwhile may be behind that look already: it would be sent without its text,
 * or what its receiver answers would stay for ever. So whoever sends again, or for one more subscription, writes the
 * row of the notification anew in the same transaction, and a text goes only from a row that is still as it was before
 * the first look. One of the two waits for the other's row lock.
 *
 * The version of a row is the transaction that wrote it: no column, and nothing that has to be removed again.
 */

/** A text that is there, as it was read. */
export interface TextVersion {
  id: string;
  version: string;
}

export const textVersions = rowsOf<TextVersion>('item', {
  id: ['uuid', (item) => item.id],
  version: ['text', (item) => item.version],
});

export interface ReadText extends TextVersion {
  /**
   * It is to be sent later: until then its publisher may put another text in its place, whatever became of its
   * deliveries.
   */
  is_scheduled: boolean;
}

export const readVersions = perDay(
  'read-text-versions',
  (of) =>
    `SELECT id, xmin::text AS version, coalesce(not_before > now(), false) AS is_scheduled
     FROM ${of('notification')} WHERE id = ANY ($ids::uuid[]) AND body IS NOT NULL`,
);

/** Of notifications of one day, those whose text is there. */
export function readTextVersions(ledger: { query: Query }, day: number, ids: readonly string[]): Promise<ReadText[]> {
  return ids.length === 0 ? Promise.resolve([]) : ledger.query<ReadText>(readVersions(day), { ids });
}

/** Whether no text of notifications of one day was erased or written anew since it was read. */
export async function areAsRead(query: Query, day: number, texts: readonly TextVersion[]): Promise<boolean> {
  const ids = texts.map(({ id }) => id);
  const versions = new Map((await readTextVersions({ query }, day, ids)).map(({ id, version }) => [id, version]));
  return texts.every(({ id, version }) => versions.get(id) === version);
}

// In the order of the ids, as they are erased: whoever takes several does not wait for one that waits for it.
export const renewItems = perDay(
  'renew-text-versions',
  (of) => `
    WITH texts AS MATERIALIZED (
      SELECT id FROM ${of('notification')} WHERE id = ANY ($ids::uuid[]) AND body IS NOT NULL ORDER BY id FOR UPDATE
    )
    UPDATE ${of('notification')} n SET channel = n.channel FROM texts WHERE n.id = ANY (ARRAY[texts.id]) RETURNING n.id`,
);

/**
 * Before a delivery of these notifications of one day is sent again, in the same transaction, and before a delivery is
 * locked.
 * @returns those whose text is there, and stays until the transaction ends
 */
export async function renewTextVersions(query: Query, day: number, ids: readonly string[]): Promise<Set<string>> {
  const rows = await query<{ id: string }>(renewItems(day), { ids: [...new Set(ids)] });
  return new Set(rows.map(({ id }) => id));
}
