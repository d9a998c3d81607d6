import type { Logger } from '@nestjs/common';
import type { QueryRunner } from 'typeorm';
import { isLockTimeout } from '../infra/postgres/postgres-errors.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { attachPartition, dayOfPartition, partitionsBetween, type Partition } from './partitions.js';

const dayMs = 86_400_000;
/** What still reads a partition, a backup for example, may go on for hours: the next round tries again. */
const lockTimeout = '2s';
/** The number is arbitrary; it only has to be the same in every process. */
const dropping = 727_274;

/** A partition's place: in its table, on its way out of it, or out. A process that dies may leave it in any of them. */
type Place = 'attached' | 'pending' | 'detached';

/**
 * Drops the days past retention in which every delivery has ended. A day with an unfinished one is kept whole. Any number of
 * processes may call it; one does the work.
 *
 * Nobody waits for it: DROP of a partition needs the whole table for an instant, and behind a backup that reads it, everything
 * that accepts or delivers would wait for that instant. So each partition is first detached CONCURRENTLY, which takes turns with
 * nobody; the table that is left is nobody's but this function's, and is dropped.
 */
export async function dropExpired(
  postgres: Postgres,
  retentionDays: number,
  logger: Logger,
  stopping: AbortSignal,
): Promise<void> {
  const runner = postgres.upkeep.createQueryRunner();
  try {
    const [{ mine }] = (await runner.query(`SELECT pg_try_advisory_lock(${dropping}) AS mine`)) as [{ mine: boolean }];
    if (!mine) return;
    const [{ before }] = (await runner.query(`SELECT current_setting('lock_timeout') AS before`)) as [
      { before: string },
    ];
    try {
      await runner.query(`SET lock_timeout = '${lockTimeout}'`);
      for (const [day, places] of await expiredDays(runner, retentionDays)) {
        const outcome = await dropDay(runner, day, places, postgres.isEmbedded);
        logger.log({ event: `ledger.day-${outcome}`, day: new Date(day).toISOString().slice(0, 10) });
        // A table has one partition on its way out at a time.
        if (outcome === 'in-use' || stopping.aborted) return;
      }
    } finally {
      await runner.query(`SET lock_timeout = '${before}'`);
      await runner.query(`SELECT pg_advisory_unlock(${dropping})`);
    }
  } finally {
    await runner.release();
  }
}

/** The places of the partitions of each day past retention, by name; the oldest day first. */
async function expiredDays(runner: QueryRunner, retentionDays: number): Promise<[number, Map<string, Place>][]> {
  const rows = (await runner.query(
    `SELECT c.relname AS name, (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
       CASE WHEN i.inhrelid IS NULL THEN 'detached' WHEN i.inhdetachpending THEN 'pending' ELSE 'attached' END AS place
     FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
     WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'delivery'::regclass)`,
  )) as { name: string; now_ms: string; place: Place }[];
  const days = new Map<number, Map<string, Place>>();
  for (const { name, now_ms, place } of rows) {
    const day = dayOfPartition(name);
    if (day === undefined || day + dayMs >= Number(now_ms) - retentionDays * dayMs) continue;
    days.set(day, (days.get(day) ?? new Map<string, Place>()).set(name, place));
  }
  return [...days].sort(([a], [b]) => a - b);
}

async function dropDay(
  runner: QueryRunner,
  day: number,
  places: Map<string, Place>,
  isEmbedded: boolean,
): Promise<'dropped' | 'kept-unfinished' | 'in-use'> {
  const partitions = partitionsBetween(day, day).filter(({ name }) => places.has(name));
  const isWhole = partitions.every(({ name }) => places.get(name) === 'attached');
  if (isWhole && (await hasUnfinished(runner, partitions))) return 'kept-unfinished';
  try {
    for (const partition of partitions) await detach(runner, partition, places.get(partition.name)!, isEmbedded);
    return await endDay(runner, partitions);
  } catch (error) {
    if (isLockTimeout(error)) return 'in-use';
    throw error;
  }
}

async function detach(runner: QueryRunner, { table, name }: Partition, place: Place, isEmbedded: boolean) {
  if (place === 'detached') return;
  // Embedded there is nobody else.
  const way = place === 'pending' ? 'FINALIZE' : isEmbedded ? '' : 'CONCURRENTLY';
  await runner.query(`ALTER TABLE ${table} DETACH PARTITION ${name} ${way}`);
}

/** An operator may have retried a delivery since the day was looked at: then it goes back where it was. */
async function endDay(runner: QueryRunner, partitions: Partition[]): Promise<'dropped' | 'kept-unfinished'> {
  const names = partitions.map(({ name }) => name).join(', ');
  await runner.startTransaction();
  try {
    await runner.query(`LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE`);
    const isKept = await hasUnfinished(runner, partitions);
    if (isKept) for (const partition of partitions) await runner.query(attachPartition(partition));
    else await runner.query(`DROP TABLE ${names}`);
    await runner.commitTransaction();
    return isKept ? 'kept-unfinished' : 'dropped';
  } catch (error) {
    await runner.rollbackTransaction();
    throw error;
  }
}

async function hasUnfinished(runner: QueryRunner, partitions: Partition[]): Promise<boolean> {
  const deliveries = partitions.find(({ table }) => table === 'delivery');
  if (!deliveries) return false;
  // One look for each index of what is unfinished: together they would be served by none, and read the whole day.
  const looks = ["state IN ('waiting', 'held')", "state = 'queued'", "state = 'sending'"].map(
    (condition) => `EXISTS (SELECT FROM ${deliveries.name} WHERE ${condition})`,
  );
  const [found] = (await runner.query(`SELECT ${looks.join(' OR ')} AS yes`)) as [{ yes: boolean }];
  return found.yes;
}
