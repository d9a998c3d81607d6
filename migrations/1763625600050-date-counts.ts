import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * When an erasure had counted: it waits for its confirmation from then on. Where that is not known, since a process of
 * the version before counted, it waits from its request on. Takes a lock on `erasure` (ACCESS EXCLUSIVE) for a moment,
 * without reading it.
 */
export class DateCounts1763625600050 implements MigrationInterface {
  name = 'DateCounts1763625600050';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE erasure ADD COLUMN counted_at timestamptz');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE erasure DROP COLUMN counted_at');
  }
}
