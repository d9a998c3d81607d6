import { readAllBodyDays } from '../channels/read-body-days.js';
import type { DropConnection } from '../infra/postgres/detach-partitions.js';
import type { Query } from '../infra/postgres/postgres.js';
import { statement, valuesOf } from '../infra/postgres/statement.js';
import type { OldDay } from '../ledger/drop-expired.js';
import { dateOf, dayMs } from '../ledger/partitions.js';
import { dueChannels } from './due-channels.js';
import { walkAgain } from './retention-days.js';

/**
 * One about a main object may mean any day. It holds a day that it was asked for before the day was past its
 * retention, and otherwise only until its walk has passed the day, which is the oldest as a rule: where one is always
 * open, because one is counted each day and not confirmed, every day waits for a few of them, and none for ever.
 */
const openErasure = statement(
  'open-erasure-of-day',
  `SELECT EXISTS (
     SELECT FROM erasure WHERE state IN ('counting', 'counted', 'erasing', 'ending')
       AND CASE WHEN notification_id IS NULL THEN requested_at < $expired OR state = 'erasing' AND reached < $to
                ELSE notification_id >= $from AND notification_id < $to END
   ) AS yes`,
);

/**
 * Whether a day that is past its retention still has a text that was to be gone by now, or that an open erasure may
 * mean: in an archive it would stay for ever. The tables themselves are asked, not the notes about them: those of a
 * table that was restored by hand say that it was walked through, and so it is walked through once more.
 * @param retention how many days a day is kept, and bodies of the channels that have no days of their own
 */
export async function isYetToErase(
  connection: DropConnection,
  { day, partitions }: OldDay,
  { days, bodyDays }: { days: number; bodyDays: number | undefined },
): Promise<boolean> {
  const notifications = partitions.find(({ table }) => table === 'notification');
  if (!notifications) return false;
  const query = ((asked, values = {}) => connection.query(asked.text, valuesOf(asked, values))) as Query;
  const { name, from, to } = notifications;
  const expired = new Date((day + 1 + days) * dayMs);
  const [erasure] = await query<{ yes: boolean }>(openErasure, { from, to, expired });
  if (erasure!.yes) return true;
  const [{ now }] = (await connection.query('SELECT extract(epoch FROM now())::float8 * 1000 AS now')) as [
    { now: number },
  ];
  const due = dueChannels(await readAllBodyDays(query), day, now, bodyDays);
  if (due.length === 0) return false;
  const found = (await connection.query(
    `SELECT DISTINCT channel FROM ${name} WHERE body IS NOT NULL AND channel = ANY ($1::text[])`,
    [due],
  )) as { channel: string }[];
  const channels = found.map(({ channel }) => channel);
  if (channels.length > 0) await query(walkAgain, { day: dateOf(day), channels, from, to });
  return channels.length > 0;
}
