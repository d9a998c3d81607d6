import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A nullable column without a default: no row is written, and the lock on the table and its partitions is over at once.
 */
export class AddTraceParent1763625600008 implements MigrationInterface {
  name = 'AddTraceParent1763625600008';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- W3C trace context of its publication ('traceparent'), by which its deliveries are part of the same trace; null: it has none
      ALTER TABLE notification ADD COLUMN trace_parent text;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE notification DROP COLUMN trace_parent');
  }
}
