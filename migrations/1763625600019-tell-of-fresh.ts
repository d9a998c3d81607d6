import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Processes tell each other when they last delivered something as it was accepted. Locks the table `process` for an
 * instant.
 */
export class TellOfFresh1763625600019 implements MigrationInterface {
  name = 'TellOfFresh1763625600019';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE process ADD COLUMN fresh_at timestamptz');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE process DROP COLUMN fresh_at');
  }
}
