import type { Postgres } from '../infra/postgres/postgres.js';
import { onEachDay, perDay } from './per-day.js';

export const findBodies = perDay(
  'read-bodies',
  (of) => `SELECT id, body FROM ${of('notification')} WHERE id = ANY ($ids::uuid[]) AND body IS NOT NULL`,
);

/** The bytes to send of each notification, by id. One that is past its retention, or was erased, is missing. */
export async function readBodies(postgres: Postgres, notificationIds: string[]): Promise<Map<string, Buffer>> {
  const rows = await onEachDay(
    notificationIds,
    (id) => id,
    (day, ids) => postgres.query<{ id: string; body: string }>(findBodies(day), { ids }),
  );
  return new Map(rows.map((row) => [row.id, Buffer.from(row.body)]));
}

/** A large text lies beside its row, and its size in the row: nothing of the text is read. */
export const findBodySizes = perDay(
  'read-body-sizes',
  (of) =>
    `SELECT id, octet_length(body) AS size FROM ${of('notification')} WHERE id = ANY ($ids::uuid[]) AND body IS NOT NULL`,
);

/** How many bytes each of these texts is long, likewise. */
export async function readBodySizes(postgres: Postgres, notificationIds: string[]): Promise<Map<string, number>> {
  const rows = await onEachDay(
    notificationIds,
    (id) => id,
    (day, ids) => postgres.query<{ id: string; size: number }>(findBodySizes(day), { ids }),
  );
  return new Map(rows.map((row) => [row.id, row.size]));
}
