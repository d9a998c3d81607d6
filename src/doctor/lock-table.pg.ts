import type pg from 'pg';
import type { Settings } from '../config/settings.js';
import { ok, skipped, warning, type Finding } from './finding.js';

const name = 'postgres-locks';
/** Days to come that have partitions already. */
const daysAhead = 7;

export interface LockTable {
  /** max_locks_per_transaction. */
  perTransaction: number;
  /** That Postgres makes room for: max_connections and max_prepared_transactions. */
  transactions: number;
  /** Partitions of `delivery` now. */
  days: number;
  /** Of each of them. */
  indexes: number;
  /** Processes that dispatch. */
  dispatchers: number;
}

/**
 * To plan a statement about deliveries that are due, Postgres locks each day and each of its indexes. Each process that
 * dispatches does so after its start, and whenever statistics change. The lock table has room for `perTransaction *
 * transactions` things, and for twice as many holders; without room a statement fails with "out of shared memory"
 * (measured: 365 days, 100 connections and 64 locks each are enough for four at once).
 */
export function judgeLockTable(table: LockTable, retentionDays: number): Finding {
  const { perTransaction, transactions, indexes, dispatchers } = table;
  const days = Math.max(table.days, retentionDays + daysAhead);
  const ofOne = days * (1 + indexes);
  const needed = Math.max(ofOne, (ofOne * Math.max(dispatchers, 2)) / 2);
  const found = `room for ${perTransaction * transactions}; ${days} days need ${Math.ceil(needed)}`;
  if (perTransaction * transactions >= needed) return ok(name, found);
  const enough = Math.ceil(needed / transactions / 64) * 64;
  return warning(
    name,
    found,
    `Set max_locks_per_transaction to ${enough} and restart Postgres, or lower RETENTION_DAYS: statements fail with "out of shared memory".`,
  );
}

export async function examineLockTable(client: pg.Client, { RETENTION_DAYS }: Settings): Promise<Finding> {
  const { rows: tables } = await client.query<{ there: boolean }>(
    `SELECT to_regclass('delivery') IS NOT NULL AND to_regclass('process') IS NOT NULL AS there`,
  );
  if (!tables[0]!.there) return skipped(name, 'the database is empty');
  const { rows } = await client.query<LockTable>(
    `SELECT current_setting('max_locks_per_transaction')::int AS "perTransaction",
       current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int AS transactions,
       (SELECT count(*) FROM pg_inherits WHERE inhparent = 'delivery'::regclass)::int AS days,
       (SELECT count(*) FROM pg_index WHERE indrelid = 'delivery'::regclass)::int AS indexes,
       (SELECT count(*) FROM process WHERE expires_at > now() AND 'dispatcher' = ANY (roles))::int AS dispatchers`,
  );
  return judgeLockTable(rows[0]!, RETENTION_DAYS);
}
