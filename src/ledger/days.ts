import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { dayOfPartition } from './partitions.js';

const dayMs = 86_400_000;

const findDays = statement(
  'ledger-days',
  `SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
   WHERE inhparent = 'delivery'::regclass AND NOT inhdetachpending`,
);

/** The days that the ledger has, in days since 1970, the oldest first. */
export async function readDays(postgres: Postgres): Promise<number[]> {
  const rows = await postgres.query<{ name: string }>(findDays);
  return rows
    .map(({ name }) => dayOfPartition(name))
    .filter((ms) => ms !== undefined)
    .map((ms) => ms / dayMs)
    .sort((one, other) => one - other);
}
