import { Logger } from '@nestjs/common';
import type { DataSource, QueryRunner } from 'typeorm';
import { advisoryLocks } from './advisory-locks.js';

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

/** As `inMigrationTurn`, but does not wait. @returns false, without `work`, while another process does */
export async function inFreeMigrationTurn(upkeep: DataSource, work: () => Promise<unknown>): Promise<boolean> {
  return onConnection(upkeep, async (runner) => {
    const tried = `SELECT pg_try_advisory_lock(${advisoryLocks.migrations}) AS is_ours`;
    const [{ is_ours }] = (await runner.query(tried)) as [{ is_ours: boolean }];
    if (is_ours) await inTurn(runner, work);
    return is_ours;
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
