import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';

/** Held by the one process that migrates. The number is arbitrary; it only has to be the same in every process. */
export const migrationLock = 727272;

/** A migration of a large table may take an hour: an operator must see what the others wait for. */
const tellEveryMs = 10_000;

/** Runs `work` while no other process does; it waits for them first. */
export async function inMigrationTurn<T>(upkeep: DataSource, work: () => Promise<T>): Promise<T> {
  const queryRunner = upkeep.createQueryRunner();
  const tell = () =>
    new Logger('Postgres').warn({ event: 'postgres.migration-waits', for: 'another process to migrate' });
  const telling = setInterval(tell, tellEveryMs);
  try {
    await queryRunner.query(`SELECT pg_advisory_lock(${migrationLock})`).finally(() => clearInterval(telling));
    return await work();
  } finally {
    // Fails on a connection that has broken, whose lock is gone with it: `work` says why.
    await queryRunner.query(`SELECT pg_advisory_unlock(${migrationLock})`).catch(() => undefined);
    await queryRunner.release();
  }
}
