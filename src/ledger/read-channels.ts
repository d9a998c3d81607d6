import type { Postgres } from '../infra/postgres/postgres.js';
import { onEachDay, perDay } from './per-day.js';

export const findChannels = perDay(
  'read-channels',
  (of) => `SELECT id, channel FROM ${of('notification')} WHERE id = ANY ($ids::uuid[])`,
);

/** For the length of the transaction, none of them moves to another channel. */
export const lockChannels = perDay(
  'lock-channels',
  (of) => `SELECT id, channel FROM ${of('notification')} WHERE id = ANY ($ids::uuid[]) ORDER BY id FOR SHARE`,
);

/** The channel of each notification, by id. One that is past its retention is missing. */
export async function readChannels(
  postgres: Postgres,
  notificationIds: readonly string[],
): Promise<Map<string, string>> {
  const rows = await onEachDay(
    notificationIds,
    (id) => id,
    (day, ids) => postgres.query<{ id: string; channel: string }>(findChannels(day), { ids }),
  );
  return new Map(rows.map(({ id, channel }) => [id, channel]));
}
