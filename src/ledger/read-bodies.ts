import type { Postgres } from '../infra/postgres/postgres.js';
import { onEachDay, perDay } from './per-day.js';

export const findBodies = perDay(
  'read-bodies',
  (of) => `SELECT id, body FROM ${of('notification')} WHERE id = ANY ($ids::uuid[])`,
);

/** The bytes to send of each notification, by id. One that is past its retention is missing. */
export async function readBodies(postgres: Postgres, notificationIds: string[]): Promise<Map<string, Buffer>> {
  const rows = await onEachDay(
    notificationIds,
    (id) => id,
    (day, ids) => postgres.query<{ id: string; body: string }>(findBodies(day), { ids }),
  );
  return new Map(rows.map((row) => [row.id, Buffer.from(row.body)]));
}
