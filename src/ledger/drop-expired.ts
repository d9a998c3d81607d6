import type { Logger } from '@nestjs/common';
import type { QueryRunner } from 'typeorm';
import { detach, tablesBeside, whileDropping, type Stage } from '../infra/postgres/detach-partitions.js';
import { isLockTimeout } from '../infra/postgres/postgres-errors.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { attachPartition, dayOfPartition, partitionsBetween, type Partition } from './partitions.js';

const dayMs = 86_400_000;
/** The number is arbitrary. */
const dropping = 727_274;

/**
 * Drops the days past retention in which every delivery has ended. A day with an unfinished one is kept whole. Any
 * number of processes may call it; one does the work, and nobody waits for it.
 */
export async function dropExpired(
  postgres: Postgres,
  retentionDays: number,
  logger: Logger,
  stopping: AbortSignal,
): Promise<void> {
  await whileDropping(postgres, dropping, async (runner) => {
    for (const [day, stages] of await expiredDays(runner, retentionDays)) {
      const outcome = await dropDay(runner, day, stages, postgres.isEmbedded);
      logger.log({ event: `ledger.day-${outcome}`, day: new Date(day).toISOString().slice(0, 10) });
      // A table has one partition on its way out at a time.
      if (outcome === 'in-use' || stopping.aborted) return;
    }
  });
}

/** The stages of the partitions of each day past retention, by name; the oldest day first. */
async function expiredDays(runner: QueryRunner, retentionDays: number): Promise<[number, Map<string, Stage>][]> {
  const days = new Map<number, Map<string, Stage>>();
  for (const { name, stage, nowMs } of await tablesBeside('delivery', runner)) {
    const day = dayOfPartition(name);
    if (day === undefined || day + dayMs >= nowMs - retentionDays * dayMs) continue;
    days.set(day, (days.get(day) ?? new Map<string, Stage>()).set(name, stage));
  }
  return [...days].sort(([a], [b]) => a - b);
}

async function dropDay(
  runner: QueryRunner,
  day: number,
  stages: Map<string, Stage>,
  isEmbedded: boolean,
): Promise<'dropped' | 'kept-unfinished' | 'in-use'> {
  const partitions = partitionsBetween(day, day).filter(({ name }) => stages.has(name));
  const isWhole = partitions.every(({ name }) => stages.get(name) === 'attached');
  if (isWhole && (await hasUnfinished(runner, partitions))) return 'kept-unfinished';
  try {
    // In the reverse of the order in which they are made: a delivery that is found has its notification. One that an
    // operator retries meanwhile is handed out with its text, or it waits until its day is back.
    for (const partition of partitions.toReversed())
      await detach(runner, partition, stages.get(partition.name)!, isEmbedded);
    return await endDay(runner, partitions);
  } catch (error) {
    if (isLockTimeout(error)) return 'in-use';
    throw error;
  }
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
  const looks = [
    "state BETWEEN 'waiting' AND 'held' AND subscription_id IS NOT NULL", // as the index by subscription has it
    "state = 'queued'",
    "state = 'sending'",
    // Ended, but others about the same object still wait for its turn to be passed on.
    'turn_nr <= 0 AND ended_at IS NOT NULL',
  ].map((condition) => `EXISTS (SELECT FROM ${deliveries.name} WHERE ${condition})`);
  const [found] = (await runner.query(`SELECT ${looks.join(' OR ')} AS yes`)) as [{ yes: boolean }];
  return found.yes;
}
