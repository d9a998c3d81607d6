import { Logger } from '@nestjs/common';
import type { DataSource, QueryRunner } from 'typeorm';
import { advisoryLocks } from './advisory-locks.js';
import { isLockTimeout } from './postgres-errors.js';
import { triedAgain } from './timed-out.js';

/** A migration of a large table may take an hour: an operator must see what the others wait for. */
const tellEveryMs = 10_000;

/** Runs `work` while no other process does; it waits for them first. */
export async function inMigrationTurn<T>(upkeep: DataSource, work: () => Promise<T>): Promise<T> {
  const tell = () =>
    new Logger('Postgres').warn({ event: 'postgres.migration-waits', for: 'another process to migrate' });
  const telling = setInterval(tell, tellEveryMs);
  const wait = (runner: QueryRunner) =>
    runner.query(`SELECT pg_advisory_lock(${advisoryLocks.migrations})`).finally(() => clearInterval(telling));
  return onConnection(upkeep, async (runner) => {
    await wait(runner);
    return inTurn(runner, work);
  });
}

/** As `inMigrationTurn`, but waits no longer than this. @returns false, without `work`, where the turn did not come */
export async function inMigrationTurnWithin(
  longestMs: number,
  upkeep: DataSource,
  work: () => Promise<unknown>,
): Promise<boolean> {
  return onConnection(upkeep, async (runner) => {
    Object.assign(runner.data, triedAgain);
    await runner.startTransaction();
    try {
      await runner.query(`SET LOCAL lock_timeout = ${longestMs}`);
      await runner.query(`SELECT pg_advisory_lock(${advisoryLocks.migrations})`); // stays after the transaction
      await runner.commitTransaction();
    } catch (error) {
      await runner.rollbackTransaction().catch(() => undefined); // fails on a connection that has broken
      if (!isLockTimeout(error)) throw error;
      return false;
    }
    await inTurn(runner, work);
    return true;
  });
}

async function inTurn<T>(runner: QueryRunner, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    // Fails on a connection that has broken, whose lock is gone with it: `work` says why.
    await runner.query(`SELECT pg_advisory_unlock(${advisoryLocks.migrations})`).catch(() => undefined);
  }
}

async function onConnection<T>(upkeep: DataSource, work: (runner: QueryRunner) => Promise<T>): Promise<T> {
  const queryRunner = upkeep.createQueryRunner();
  try {
    return await work(queryRunner);
  } finally {
    await queryRunner.release();
  }
}
