import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A nullable column without a default: no row is written, and the lock on `activity` is over at once. */
export class TellOfFailing1763625600016 implements MigrationInterface {
  name = 'TellOfFailing1763625600016';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- when something was last delivered, to ten seconds; null: nothing, or by an older version
      ALTER TABLE activity ADD COLUMN last_delivered_at timestamptz;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE activity DROP COLUMN last_delivered_at');
  }
}
