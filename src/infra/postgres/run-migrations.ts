import { Logger, type LoggerService } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { MigrationExecutor, type DataSource, type Migration } from 'typeorm';
import { RepeatedFailures } from '../logging/repeated-failures.js';
import { isDeadlock, isLockTimeout } from './postgres-errors.js';
import { triedAgain } from './timed-out.js';

const longestPauseMs = 60_000;

/**
 * Between two tries of a migration. In each everybody waits behind it for two seconds (`lock_timeout`): behind a backup
 * of hours that must not be most of the time.
 */
export const pauseAfter = (failures: number): number => Math.min(1000 * 2 ** (failures - 1), longestPauseMs);

/**
 * Runs the migrations that have not run yet, each in a transaction of its own. One that does not get a lock soon,
 * behind a backup for example, is undone and tried again: others wait behind it. So is one that Postgres ends because
 * it and others, which go on working meanwhile, wait for each other.
 */
export async function runMigrations(upkeep: DataSource, logger?: Pick<LoggerService, 'log'>): Promise<string[]> {
  const ran: string[] = [];
  const waits = new RepeatedFailures(new Logger('Postgres'), { failed: { event: 'postgres.migration-waits' } });
  let pending = await pendingIn(upkeep);
  let begun: string | undefined;
  let failures = 0;
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const migration = next.name;
    if (begun !== migration) [begun, failures] = [migration, 0];
    if (failures === 0) logger?.log({ event: 'ledger.migrating', migration });
    try {
      await run(upkeep, next);
    } catch (error) {
      if (!isLockTimeout(error) && !isDeadlock(error)) throw error;
      waits.failed(error, { migration });
      await pause(pauseAfter(++failures));
      // Another process may have run it meanwhile: the turn to migrate ends with the connection that has it.
      pending = await pendingIn(upkeep);
      continue;
    }
    waits.worked();
    logger?.log({ event: 'ledger.migrated', migration });
    ran.push(migration);
  }
  return ran;
}

const pendingIn = (upkeep: DataSource): Promise<Migration[]> => new MigrationExecutor(upkeep).getPendingMigrations();

const run = (upkeep: DataSource, migration: Migration): Promise<void> =>
  upkeep.transaction(async ({ queryRunner }) => {
    Object.assign(queryRunner!.data, triedAgain);
    await new MigrationExecutor(upkeep, queryRunner).executeMigration(migration);
  });
