import type { Logger } from '@nestjs/common';
import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import {
  detach,
  isBeingRead,
  tablesBeside,
  whileDropping,
  type DropConnection,
  type Stage,
} from '../infra/postgres/detach-partitions.js';
import { isLockTimeout } from '../infra/postgres/postgres-errors.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { graceOfDeadLetters, isDead } from './delivery.js';
import { isReplayRunning } from './erase-bodies.js';
import {
  attachPartition,
  dateOf,
  dayMs,
  midnightOfPartition,
  partitionsBetween,
  type LedgerTable,
  type Partition,
} from './partitions.js';

export type DropOutcome = 'dropped' | 'kept-unfinished' | 'kept-unerased' | 'not-exported' | 'in-use' | 'put-back';

const lineOf: Readonly<Record<DropOutcome, { event: string }>> = {
  dropped: { event: 'ledger.day-dropped' },
  'kept-unfinished': { event: 'ledger.day-kept-unfinished' },
  'kept-unerased': { event: 'ledger.day-kept-unerased' },
  'not-exported': { event: 'ledger.day-not-exported' },
  'in-use': { event: 'ledger.day-in-use' },
  'put-back': { event: 'ledger.day-put-back' },
};

/** A day that is past its retention, or was when it began to leave. */
export interface OldDay {
  /** In days since 1970, UTC. */
  day: number;
  partitions: Partition[];
}

/** Rows as the planner estimates them, and bytes on the disk; null: it was never told. */
export interface DaySize {
  notifications: number | null;
  deliveries: number | null;
  attempts: number | null;
  bytes: number;
}

/** Told of what is done. */
export interface DropWatcher {
  /**
   * Copies the day, in which everything has ended. `connection`: without a limit of time. Absent: no copy is wanted.
   * @returns false: the day has to be kept for now
   */
  copy?(connection: DropConnection, day: OldDay): Promise<boolean>;
  /** Whether something of the day is to be erased before it may be copied. */
  isYetToErase?(connection: DropConnection, day: OldDay): Promise<boolean>;
  /**
   * In the transaction that drops the day: whatever happens afterwards, what is written here is written once, or the
   * day is still there.
   */
  asDropped(inside: DropConnection, day: OldDay, size: DaySize): Promise<void>;
  afterwards(day: OldDay, outcome: DropOutcome): Promise<void>;
}

/**
 * Drops the days past retention in which every delivery has ended. A day with an unfinished delivery is kept whole, and
 * so is one in which a delivery became a dead letter within the last week, or within the retention if that is shorter:
 * an operator is to see it; and one that a replay which is running has yet to look at, or that has a notification
 * scheduled for later. A day that has begun to leave and is not past retention any more, because that was made longer,
 * is put back. Any number of processes may call it; one does the work, and nobody waits for it.
 */
export async function dropExpired(
  postgres: Postgres,
  retentionDays: number,
  logger: Pick<Logger, 'log' | 'error'>,
  stopping: AbortSignal,
  watcher?: DropWatcher,
): Promise<void> {
  const graceDays = graceOfDeadLetters(retentionDays);
  await whileDropping(postgres, advisoryLocks.droppingDays, async (connection) => {
    let failure: unknown;
    for (const { ms, stages, isExpired } of await daysToLeave(connection, retentionDays)) {
      const partitions = partitionsBetween(ms, ms).filter(({ name }) => stages.has(name));
      const old = { day: ms / dayMs, partitions };
      try {
        const size = await sizeOf(connection, partitions);
        const outcome = (await isInUse(connection, partitions, stages, postgres.isEmbedded))
          ? 'in-use'
          : await (isExpired
              ? dropDay(connection, old, stages, postgres.isEmbedded, watcher && { watcher, size }, graceDays)
              : putBack(connection, partitions, stages));
        if (outcome === 'not-exported' && stopping.aborted) break; // nothing failed
        await watcher?.afterwards(old, outcome);
        logger.log({ ...lineOf[outcome], day: dateOf(old.day), ...(outcome === 'dropped' && size) });
        // A table has one partition on its way out at a time. The cause that keeps one day from being exported keeps
        // the next one too.
        if (outcome === 'in-use' || outcome === 'not-exported') break;
      } catch (error) {
        // It keeps no other: one whose columns are not those of its table any more cannot be put back, ever.
        logger.error({ event: 'ledger.day-failed', day: dateOf(old.day), error });
        failure ??= error;
      }
      if (stopping.aborted) break;
    }
    if (failure !== undefined) throw failure;
  });
}

async function sizeOf(connection: DropConnection, partitions: Partition[]): Promise<DaySize> {
  const rows = (await connection.query(
    `SELECT relname AS name, CASE WHEN reltuples >= 0 THEN reltuples::float8 END AS rows,
       pg_total_relation_size(oid)::float8 AS bytes
     FROM pg_class WHERE relname = ANY ($1) AND pg_table_is_visible(oid)`,
    [partitions.map(({ name }) => name)],
  )) as { name: string; rows: number | null; bytes: number }[];
  const rowsIn = (table: LedgerTable): number | null => {
    const partition = partitions.find((candidate) => candidate.table === table);
    return rows.find(({ name }) => name === partition?.name)?.rows ?? null;
  };
  return {
    notifications: rowsIn('notification'),
    deliveries: rowsIn('delivery'),
    attempts: rowsIn('attempt'),
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

interface LeavingDay {
  /** UTC midnight. */
  ms: number;
  /** Of its partitions, by name. */
  stages: Map<string, Stage>;
  /** False: it has begun to leave, and is not past retention any more. */
  isExpired: boolean;
}

/**
 * Those that have begun to leave first: as long as a partition is half detached, no other one of its table can be. Then
 * the oldest.
 */
async function daysToLeave(connection: DropConnection, retentionDays: number): Promise<LeavingDay[]> {
  const days = new Map<number, LeavingDay>();
  for (const { name, stage, nowMs } of await tablesBeside('delivery', connection)) {
    const ms = midnightOfPartition(name);
    if (ms === undefined) continue;
    const isExpired = ms + dayMs < nowMs - retentionDays * dayMs;
    const day = days.get(ms) ?? { ms, stages: new Map<string, Stage>(), isExpired };
    day.stages.set(name, stage);
    days.set(ms, day);
  }
  const hasBegun = ({ stages }: LeavingDay) => [...stages.values()].some((stage) => stage !== 'attached');
  return [...days.values()]
    .filter((day) => day.isExpired || hasBegun(day))
    .sort((one, other) => Number(hasBegun(other)) - Number(hasBegun(one)) || one.ms - other.ms);
}

interface Watched {
  watcher: DropWatcher;
  size: DaySize;
}

async function dropDay(
  connection: DropConnection,
  old: OldDay,
  stages: Map<string, Stage>,
  isEmbedded: boolean,
  watched: Watched | undefined,
  graceDays: number,
): Promise<DropOutcome> {
  const { partitions } = old;
  const kept = await whyKept(connection, old, watched, graceDays);
  const copied = kept ? undefined : await copyDay(connection, old, watched);
  return unlessInUse(async () => {
    if (kept || copied === false) {
      await bringBack(connection, partitions, stages);
      return kept ?? 'not-exported';
    }
    // In the reverse of the order in which they are made: a delivery that is found has its notification. One that an
    // operator retries meanwhile is handed out with its text, or it waits until its day is back.
    for (const partition of partitions.toReversed())
      await detach(connection, partition, stages.get(partition.name)!, isEmbedded);
    return await endDay(connection, old, watched, graceDays, copied);
  });
}

/**
 * Of a day that has begun to leave: ends the detaching of what is half detached. It comes before the copy: behind a
 * backup that takes hours each round would copy the day in vain.
 * @param stages of the partitions, where none is half detached afterwards
 * @returns somebody reads the day, or may do so still
 */
async function isInUse(
  connection: DropConnection,
  partitions: readonly Partition[],
  stages: Map<string, Stage>,
  isEmbedded: boolean,
): Promise<boolean> {
  const leaving = partitions.filter(({ name }) => stages.get(name) !== 'attached');
  const names = leaving.map(({ name }) => name);
  if (names.length > 0 && (await isBeingRead(connection, names))) return true;
  const outcome = await unlessInUse(async () => {
    for (const partition of leaving) {
      await detach(connection, partition, stages.get(partition.name)!, isEmbedded);
      stages.set(partition.name, 'detached');
    }
  });
  return outcome === 'in-use';
}

async function unlessInUse<T>(change: () => Promise<T>): Promise<T | 'in-use'> {
  try {
    return await change();
  } catch (error) {
    if (isLockTimeout(error)) return 'in-use';
    throw error;
  }
}

const putBack = (connection: DropConnection, partitions: readonly Partition[], stages: ReadonlyMap<string, Stage>) =>
  unlessInUse(async () => {
    await bringBack(connection, partitions, stages);
    return 'put-back' as const;
  });

/**
 * One that has begun to leave is needed again: an operator had a delivery of it sent, which cannot be handed out, or a
 * replay waits for it, or RETENTION_DAYS was raised. In the order in which they are made: a delivery that is found has
 * its notification.
 */
async function bringBack(
  connection: DropConnection,
  partitions: readonly Partition[],
  stages: ReadonlyMap<string, Stage>,
): Promise<void> {
  for (const partition of partitions)
    if (stages.get(partition.name) !== 'attached') await connection.query(attachPartition(partition));
}

/**
 * Also a day that has begun to leave, and was copied then: an operator may have had something of it sent since.
 * @returns the versions of its rows, of which the copy has no older ones; false: it could not be copied; undefined: no
 *   copy is wanted
 */
async function copyDay(
  connection: DropConnection,
  old: OldDay,
  watched: Watched | undefined,
): Promise<string | false | undefined> {
  if (!watched?.watcher.copy) return undefined;
  const versions = await versionsOf(connection, old.partitions);
  return (await watched.watcher.copy(connection, old)) && versions;
}

/**
 * Another text as soon as a row was written anew: by a later transaction, whose number is higher. Reads the whole day,
 * as its copy does.
 */
async function versionsOf(connection: DropConnection, partitions: readonly Partition[]): Promise<string> {
  const rows = partitions.map(({ name }) => `SELECT xmin::text::bigint AS version FROM ${name}`).join(' UNION ALL ');
  const [found] = (await connection.query(
    `SELECT concat(count(*), ' rows, ', sum(version)) AS versions FROM (${rows}) AS each`,
  )) as [{ versions: string }];
  return found.versions;
}

/**
 * An operator may have retried a delivery since the day was looked at: then it goes back where it was. So it does where
 * that delivery has ended already, or something was erased: the copy would have what is not true any more.
 * @param copied the versions of its rows before it was copied; undefined: it was not
 */
async function endDay(
  connection: DropConnection,
  old: OldDay,
  watched: Watched | undefined,
  graceDays: number,
  copied: string | undefined,
): Promise<DropOutcome> {
  const { partitions } = old;
  const names = partitions.map(({ name }) => name).join(', ');
  return connection.transaction(async (inside) => {
    await inside.query(`LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE`);
    const isOutdated = async () => copied !== undefined && copied !== (await versionsOf(inside, partitions));
    const kept =
      (await whyKept(inside, old, watched, graceDays)) ?? ((await isOutdated()) ? 'kept-unfinished' : undefined);
    if (kept) for (const partition of partitions) await inside.query(attachPartition(partition));
    else {
      await inside.query(`DROP TABLE ${names}`);
      await watched?.watcher.asDropped(inside, old, watched.size);
    }
    return kept ?? 'dropped';
  });
}

/** @returns undefined: it may go */
async function whyKept(
  connection: DropConnection,
  old: OldDay,
  watched: Watched | undefined,
  graceDays: number,
): Promise<'kept-unfinished' | 'kept-unerased' | undefined> {
  if (await isStillNeeded(connection, old.partitions, graceDays)) return 'kept-unfinished';
  return (await watched?.watcher.isYetToErase?.(connection, old)) ? 'kept-unerased' : undefined;
}

async function isStillNeeded(connection: DropConnection, partitions: Partition[], graceDays: number): Promise<boolean> {
  const deliveries = partitions.find(({ table }) => table === 'delivery');
  const notifications = partitions.find(({ table }) => table === 'notification');
  if (!deliveries || !notifications) return false;
  // One look for each index of what is unfinished or dead: together they would be served by none, and read the whole
  // day.
  const looks = [
    "state BETWEEN 'waiting' AND 'held' AND subscription_id IS NOT NULL", // as the index by subscription has it
    "state = 'queued'",
    "state = 'sending'",
    // Ended, but others about the same object still wait for its turn to be passed on.
    'turn_nr <= 0 AND ended_at IS NOT NULL',
    `${isDead()} AND ended_at > now() - ${graceDays} * interval '1 day'`,
  ].map((condition) => `EXISTS (SELECT FROM ${deliveries.name} WHERE ${condition})`);
  looks.push(`EXISTS (${scheduledIn(notifications.name)})`, `EXISTS (${replayYetToCome(deliveries)})`);
  const [found] = (await connection.query(`SELECT ${looks.join(' OR ')} AS yes`)) as [{ yes: boolean }];
  return found.yes;
}

/**
 * Its publisher may still replace it, and has it sent to others than those whose deliveries have ended, or to the first
 * one. Not one whose text is gone.
 */
export const scheduledIn = (notifications: string): string =>
  `SELECT FROM ${notifications} WHERE not_before > now() AND body IS NOT NULL`;

/**
 * A replay means dead letters that may be of this day, and has yet to come to them: without them it would be done all
 * the same.
 */
export const replayYetToCome = ({ from, to }: Pick<Partition, 'from' | 'to'>): string =>
  `SELECT FROM replay WHERE ${isReplayRunning} AND after_notification < '${to}' AND before_id > '${from}'`;
