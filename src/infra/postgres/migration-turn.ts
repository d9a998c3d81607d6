import type { DataSource } from 'typeorm';

/** Held by the one process that migrates. The number is arbitrary; it only has to be the same in every process. */
export const migrationLock = 727272;

/** Runs `work` while no other process does; it waits for them first. */
export async function inMigrationTurn<T>(upkeep: DataSource, work: () => Promise<T>): Promise<T> {
  const queryRunner = upkeep.createQueryRunner();
  try {
    await queryRunner.query(`SELECT pg_advisory_lock(${migrationLock})`);
    return await work();
  } finally {
    // Fails on a connection that has broken, whose lock is gone with it: `work` says why.
    await queryRunner.query(`SELECT pg_advisory_unlock(${migrationLock})`).catch(() => undefined);
    await queryRunner.release();
  }
}
