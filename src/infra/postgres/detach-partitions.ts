import type { EntityManager } from 'typeorm';
import type { Postgres } from './postgres.js';

/** How far a partition is detached from its table. A process that dies may leave it at any stage. */
export type Stage = 'attached' | 'pending' | 'detached';

/** The connection on which partitions are dropped. */
export type DropConnection = Pick<EntityManager, 'query' | 'transaction'>;

/** A reader of a partition, a backup for example, may go on for hours: the next round tries again. */
const lockTimeout = '2s';

/**
 * Runs `work`, which detaches partitions and drops them, in one of the processes that call it; in the others it does
 * nothing.
 *
 * Nobody waits for that work: DROP of a partition needs the whole table for an instant, and behind a backup that reads
 * it, everything that writes to the table would wait for that instant. So each partition is first detached
 * CONCURRENTLY, which takes turns with nobody; the table that is left is nobody's but this function's, and is dropped.
 *
 * Embedded there is no other process, and one connection, which each statement of `work` gives back: an export takes
 * minutes.
 * @param lock a number of this work's own, the same in every process
 */
export async function whileDropping(
  postgres: Postgres,
  lock: number,
  work: (connection: DropConnection) => Promise<void>,
): Promise<void> {
  if (postgres.isEmbedded) return work(postgres.dataSource.manager);
  const runner = postgres.upkeep.createQueryRunner();
  try {
    const [{ mine }] = (await runner.query(`SELECT pg_try_advisory_lock(${lock}) AS mine`)) as [{ mine: boolean }];
    if (!mine) return;
    const [{ before }] = (await runner.query(`SELECT current_setting('lock_timeout') AS before`)) as [
      { before: string },
    ];
    try {
      await runner.query(`SET lock_timeout = '${lockTimeout}'`);
      await work(runner.manager);
    } finally {
      await runner.query(`SET lock_timeout = '${before}'`);
      await runner.query(`SELECT pg_advisory_unlock(${lock})`);
    }
  } finally {
    await runner.release();
  }
}

/**
 * Every table of the schema of `beside`, partition or not, and the time by Postgres' clock, in milliseconds since 1970.
 */
export async function tablesBeside(
  beside: string,
  connection: DropConnection,
): Promise<{ name: string; stage: Stage; nowMs: number }[]> {
  const rows = (await connection.query(
    `SELECT c.relname AS name, (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
       CASE WHEN i.inhrelid IS NULL THEN 'detached' WHEN i.inhdetachpending THEN 'pending' ELSE 'attached' END AS stage
     FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
     WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = '${beside}'::regclass)`,
  )) as { name: string; now_ms: string; stage: Stage }[];
  return rows.map(({ name, stage, now_ms }) => ({ name, stage, nowMs: Number(now_ms) }));
}

/**
 * Whether somebody reads one of these, none of which is attached any more. To wait for its end would have others
 * refused who ask for it without waiting, as each worker of `pg_dump --jobs` does: the dump ends with one refusal.
 */
export async function isBeingRead(connection: DropConnection, names: readonly string[]): Promise<boolean> {
  const [found] = (await connection.query(
    `SELECT EXISTS (
       SELECT FROM pg_locks
       WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND relation = ANY ($1::text[]::regclass[]) AND mode = 'AccessShareLock' AND pid IS DISTINCT FROM pg_backend_pid()
     ) AS yes`,
    [names],
  )) as [{ yes: boolean }];
  return found.yes;
}

export async function detach(
  connection: DropConnection,
  { table, name }: { table: string; name: string },
  stage: Stage,
  isEmbedded: boolean,
): Promise<void> {
  if (stage === 'detached') return;
  // Embedded there is nobody else.
  const way = stage === 'pending' ? 'FINALIZE' : isEmbedded ? '' : 'CONCURRENTLY';
  await connection.query(`ALTER TABLE ${table} DETACH PARTITION ${name} ${way}`);
}
