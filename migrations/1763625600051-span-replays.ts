import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Between which notifications a replay sent deliveries again, cancelled or closed them: a search for those looks
 * nowhere else. With an index on deliveries each dispatcher would lock one more for each day that is kept. Locks
 * `replay` (ACCESS EXCLUSIVE) for a moment, without reading it.
 */
export class SpanReplays1763625600051 implements MigrationInterface {
  name = 'SpanReplays1763625600051';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      ALTER TABLE replay
        -- null: it did nothing yet, or nothing since this column is there
        ADD COLUMN first_done uuid,
        ADD COLUMN last_done uuid,
        -- how many of \`done\` are between those; the others were made by a process of the version before
        ADD COLUMN done_between int NOT NULL DEFAULT 0
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(
      'ALTER TABLE replay DROP COLUMN first_done, DROP COLUMN last_done, DROP COLUMN done_between',
    );
  }
}
