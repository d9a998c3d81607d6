import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Processes tell each other their DATABASE_TIMEOUT, which bounds how old the id of a notification may be when it is
 * committed. Those of the version before say nothing, and are taken to have the same. Takes a lock on `process` (ACCESS
 * EXCLUSIVE) for a moment.
 */
export class TellOfTimeout1763625600052 implements MigrationInterface {
  name = 'TellOfTimeout1763625600052';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- seconds; null: of an older version
      ALTER TABLE process ADD COLUMN database_timeout double precision;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE process DROP COLUMN database_timeout');
  }
}
