import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { dayOfPartition } from './partitions.js';

const dayMs = 86_400_000;

export interface DaysKept {
  /** In days since 1970, the oldest first; the days to come are among them. */
  days: number[];
  /** By Postgres' clock, in milliseconds since 1970. */
  nowMs: number;
}

export const findDaysKept = statement(
  'days-kept',
  `SELECT coalesce(array_agg(child.relname::text), '{}') AS names, (extract(epoch FROM now()) * 1000)::float8 AS now_ms
   FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
   WHERE inhparent = 'notification'::regclass AND NOT inhdetachpending`,
);

/** The days of which the ledger has notifications, but for those that are being dropped. */
export async function readDaysKept(postgres: Postgres): Promise<DaysKept> {
  const [found] = await postgres.query<{ names: string[]; now_ms: number }>(findDaysKept);
  const days = found!.names.map(dayOfPartition).filter((day) => day !== undefined);
  return { days: days.map((ms) => ms / dayMs).toSorted((a, b) => a - b), nowMs: found!.now_ms };
}
