import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { advisoryLocks } from './advisory-locks.js';

/** A migration of a large table may take an hour: an operator must see what the others wait for. */
const tellEveryMs = 10_000;

/** Runs `work` while no other process does; it waits for them first. */
export async function inMigrationTurn<T>(upkeep: DataSource, work: () => Promise<T>): Promise<T> {
  const queryRunner = upkeep.createQueryRunner();
  const tell = () =>
    new Logger('Postgres').warn({ event: 'postgres.migration-waits', for: 'another process to migrate' });
  const telling = setInterval(tell, tellEveryMs);
  try {
    await queryRunner
      .query(`SELECT pg_advisory_lock(${advisoryLocks.migrations})`)
      .finally(() => clearInterval(telling));
    return await work();
  } finally {
    // Fails on a connection that has broken, whose lock is gone with it: `work` says why.
    await queryRunner.query(`SELECT pg_advisory_unlock(${advisoryLocks.migrations})`).catch(() => undefined);
    await queryRunner.release();
  }
}
