import { Logger, type LoggerService } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { MigrationExecutor, type DataSource } from 'typeorm';
import { RepeatedFailures } from '../logging/repeated-failures.js';
import { isDeadlock, isLockTimeout } from './postgres-errors.js';
import { triedAgain } from './timed-out.js';

const longestPauseMs = 60_000;

/**
 * Between two tries of a migration. In each everybody waits behind it for two seconds (`lock_timeout`): behind a backup
 * of hours that must not be most of the time.
 */
export const pauseAfter = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), longestPauseMs);

export const isMigrationPending = async (upkeep: DataSource): Promise<boolean> =>
  (await new MigrationExecutor(upkeep).getPendingMigrations()).length > 0;

/** Runs the migrations that have not run yet, each in a transaction of its own. */
export async function runMigrations(upkeep: DataSource, logger?: Pick<LoggerService, 'log'>): Promise<string[]> {
  const ran: string[] = [];
  for (const migration of await new MigrationExecutor(upkeep).getPendingMigrations()) {
    logger?.log({ event: 'ledger.migrating', migration: migration.name });
    await untilItGetsItsLocks(migration.name, () =>
      upkeep.transaction(async ({ queryRunner }) => {
        Object.assign(queryRunner!.data, triedAgain);
        await new MigrationExecutor(upkeep, queryRunner).executeMigration(migration);
      }),
    );
    logger?.log({ event: 'ledger.migrated', migration: migration.name });
    ran.push(migration.name);
  }
  return ran;
}

/**
 * One that does not get a lock soon, behind a backup for example, is undone and tried again: others wait behind it. So
 * is one that Postgres ends because it and others, which go on working meanwhile, wait for each other.
 */
async function untilItGetsItsLocks(migration: string, run: () => Promise<void>): Promise<void> {
  const waits = new RepeatedFailures(new Logger('Postgres'), { failed: { event: 'postgres.migration-waits' } });
  for (let failures = 1; ; failures++) {
    try {
      return await run();
    } catch (error) {
      if (!isLockTimeout(error) && !isDeadlock(error)) throw error;
      waits.failed(error, { migration });
      await pause(pauseAfter(failures));
    }
  }
}
