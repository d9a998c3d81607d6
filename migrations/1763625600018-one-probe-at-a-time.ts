import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An endpoint whose circuit breaker is open is not probed again while a probe is under way. */
export class OneProbeAtATime1763625600018 implements MigrationInterface {
  name = 'OneProbeAtATime1763625600018';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- null: no probe is under way; past: it is taken for lost
      ALTER TABLE endpoint ADD COLUMN probing_until timestamptz;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE endpoint DROP COLUMN probing_until');
  }
}
