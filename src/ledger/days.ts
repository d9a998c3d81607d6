import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { dayMs, midnightOfPartition, partitionOf } from './partitions.js';

/** Names of later ones would have more digits. No notification is of them. */
const latestDay = Date.UTC(9999, 11, 31) / dayMs;

/** A day of the ledger, in days since 1970. */
export interface LedgerDay {
  day: number;
  /**
   * It is on its way out (src/ledger/drop-expired.ts), and may yet come back: whoever looks into the whole tables does
   * not see it, and nothing of it is handed out. Statements that name its partitions (`perDay`) read and change it as
   * before.
   */
  isAway: boolean;
}

// Without its attempts, which leave first, a day is there for all who send: they are written into their partition.
const findDays = statement(
  'ledger-days',
  `SELECT day.relname AS name, i.inhrelid IS NULL OR i.inhdetachpending AS is_away
   FROM pg_class day LEFT JOIN pg_inherits i ON i.inhrelid = day.oid
   WHERE day.relkind = 'r' AND day.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'delivery'::regclass)
     AND (day.relname BETWEEN $first_deliveries::name AND $last_deliveries::name
       OR day.relname BETWEEN $first_notifications::name AND $last_notifications::name)`,
);

/**
 * The days whose tables there are, from `first` to `last`, the oldest first. Whether a day is there, away or gone is
 * asked nowhere else: by two looks, one that comes back between them would be neither there nor away.
 */
export async function readDays(
  connection: { query: Query },
  { first = 0, last = latestDay }: { first?: number; last?: number } = {},
): Promise<LedgerDay[]> {
  const [from, to] = [Math.min(first, latestDay), Math.min(last, latestDay)];
  const rows = await connection.query<{ name: string; is_away: boolean }>(findDays, {
    first_deliveries: partitionOf('delivery', from),
    last_deliveries: partitionOf('delivery', to),
    first_notifications: partitionOf('notification', from),
    last_notifications: partitionOf('notification', to),
  });
  const awayOf = new Map<number, boolean[]>();
  for (const { name, is_away: isAway } of rows) {
    const ms = midnightOfPartition(name);
    if (ms !== undefined) awayOf.set(ms / dayMs, [...(awayOf.get(ms / dayMs) ?? []), isAway]);
  }
  return [...awayOf]
    .filter(([, tables]) => tables.length === 2)
    .map(([day, tables]) => ({ day, isAway: tables.includes(true) }))
    .sort((one, other) => one.day - other.day);
}

/** Whether any of the days from `first` to `last` is away. */
export async function isAnyAway(connection: { query: Query }, first: number, last: number): Promise<boolean> {
  return (await readDays(connection, { first, last })).some(({ isAway }) => isAway);
}
