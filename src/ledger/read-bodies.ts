import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

const findBodies = statement(
  'read-bodies',
  'SELECT id, body FROM notification WHERE id = ANY ($ids::uuid[]) AND id BETWEEN $lowest AND $highest',
);

/** The bytes to send of each notification, by id. One that is past its retention is missing. */
export async function readBodies(postgres: Postgres, notificationIds: string[]): Promise<Map<string, Buffer>> {
  // As text, ids sort as Postgres sorts them. The range lets Postgres pass over the partitions of other days.
  const ids = notificationIds.toSorted();
  const rows = await postgres.query<{ id: string; body: string }>(findBodies, {
    ids,
    lowest: ids[0],
    highest: ids.at(-1),
  });
  return new Map(rows.map((row) => [row.id, Buffer.from(row.body)]));
}
