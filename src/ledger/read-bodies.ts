import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/** The range lets Postgres pass over the partitions of other days. */
const wanted = 'FROM notification WHERE id = ANY ($ids::uuid[]) AND id BETWEEN $lowest AND $highest';
const findBodies = statement('read-bodies', `SELECT id, body ${wanted}`);
/** A large text lies beside its row, and its size in the row: nothing of the text is read. */
const findSizes = statement('read-body-sizes', `SELECT id, octet_length(body) AS size ${wanted}`);

/** The bytes to send of each notification, by id. One that is past its retention is missing. */
export async function readBodies(postgres: Postgres, notificationIds: string[]): Promise<Map<string, Buffer>> {
  const rows = await postgres.query<{ id: string; body: string }>(findBodies, bind(notificationIds));
  return new Map(rows.map((row) => [row.id, Buffer.from(row.body)]));
}

/** How many bytes each of these texts is long, likewise. */
export async function readBodySizes(postgres: Postgres, notificationIds: string[]): Promise<Map<string, number>> {
  const rows = await postgres.query<{ id: string; size: number }>(findSizes, bind(notificationIds));
  return new Map(rows.map((row) => [row.id, row.size]));
}

function bind(notificationIds: string[]) {
  const ids = notificationIds.toSorted(); // as text they sort as Postgres sorts them
  return { ids, lowest: ids[0], highest: ids.at(-1) };
}
