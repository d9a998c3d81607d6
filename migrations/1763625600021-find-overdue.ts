import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A delivery in the hand of a process is found by the end of its lease: while a backup keeps a snapshot open, the index
 * also has an entry for each delivery that was in a hand since then. Reads all deliveries once; meanwhile nobody else
 * writes or reads any.
 */
export class FindOverdue1763625600021 implements MigrationInterface {
  name = 'FindOverdue1763625600021';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    // The old one first: it needs the lock that a backup does not let it have, before anything was built in vain.
    await queryRunner.query(`
      DROP INDEX delivery_queued;
      CREATE INDEX delivery_queued ON delivery (queued_at, next_at) WHERE state = 'queued';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX delivery_queued;
      CREATE INDEX delivery_queued ON delivery (queued_at) WHERE state = 'queued';
    `);
  }
}
