import type { Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
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
import { attachMonth, createMonth, monthOf, monthsBetween, type Month } from './months.js';

const dayMs = 86_400_000;
/**
 * Without the partition of the month nothing could be changed: a month ahead, for a dispatcher that is down over a
 * holiday.
 */
const daysAhead = 31;
/** A clock of Postgres that is set back at the beginning of a month. */
const daysBehind = 1;

/**
 * Makes the partitions of this month and the next one. Must have run before anything is changed. Any number of
 * processes may.
 */
export async function makeMonthsAhead(postgres: Postgres): Promise<void> {
  const { dataSource, upkeep } = postgres;
  if ((await missingMonths(dataSource)).length === 0) return;
  await upkeep.transaction(async (manager) => {
    // Processes that start together wait for each other.
    await manager.query(`SELECT pg_advisory_xact_lock(${advisoryLocks.makingMonths})`);
    // To attach one waits for nobody but a process that changes the partitions; there is a month to try again.
    await manager.query("SET LOCAL lock_timeout = '2s'");
    for (const month of await missingMonths(manager)) await manager.query(createMonth(month));
  });
}

async function missingMonths(database: Pick<EntityManager, 'query'>): Promise<Month[]> {
  const [found] = (await database.query(
    `SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms,
       array(SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'audit_entry'::regclass) AS names`,
  )) as [{ now_ms: string; names: string[] }];
  const now = Number(found.now_ms);
  const wanted = monthsBetween(now - daysBehind * dayMs, now + daysAhead * dayMs);
  return wanted.filter(({ name }) => !found.names.includes(name));
}

/**
 * Drops the months that ended before the retention, and puts back one that has begun to leave, where that was made
 * longer since. Any number of processes may call it; one does the work.
 */
export async function dropExpiredMonths(
  postgres: Postgres,
  retentionDays: number,
  logger: Logger,
  stopping: AbortSignal,
): Promise<void> {
  await whileDropping(postgres, advisoryLocks.droppingMonths, async (connection) => {
    let failure: unknown;
    for (const { month, stage, isExpired } of await monthsToLeave(connection, retentionDays)) {
      if (stopping.aborted) break;
      const { name } = month;
      const inUse = { event: 'audit.month-in-use', partition: name };
      try {
        if (stage !== 'attached' && (await isBeingRead(connection, [name]))) {
          logger.log(inUse);
          break; // a table has one partition on its way out at a time
        }
        await detach(connection, { table: 'audit_entry', name }, stage, postgres.isEmbedded);
        await connection.query(isExpired ? `DROP TABLE ${name}` : putBack(month));
        logger.log({ event: isExpired ? 'audit.month-dropped' : 'audit.month-put-back', partition: name });
      } catch (error) {
        if (isLockTimeout(error)) {
          logger.log(inUse);
          break;
        }
        // It keeps no other: one whose columns are not those of its table any more cannot be put back, ever.
        logger.error({ event: 'audit.month-failed', partition: name, error });
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  });
}

/** A column that a migration adds to `audit_entry` reaches no month that has begun to leave: each belongs here too. */
const putBack = (month: Month): string =>
  `ALTER TABLE ${month.name} ADD COLUMN IF NOT EXISTS via text, ADD COLUMN IF NOT EXISTS bytes integer;
   ${attachMonth(month)}`;

/** Those that have begun to leave first, then the oldest. */
async function monthsToLeave(
  connection: DropConnection,
  retentionDays: number,
): Promise<{ month: Month; stage: Stage; isExpired: boolean }[]> {
  const hasBegun = ({ stage }: { stage: Stage }) => stage !== 'attached';
  return (await tablesBeside('audit_entry', connection))
    .flatMap(({ name, stage, nowMs }) => {
      const month = monthOf(name);
      return month ? [{ month, stage, isExpired: Date.parse(month.to) < nowMs - retentionDays * dayMs }] : [];
    })
    .filter((found) => found.isExpired || hasBegun(found))
    .sort(
      (one, other) => Number(hasBegun(other)) - Number(hasBegun(one)) || (one.month.name < other.month.name ? -1 : 1),
    );
}
