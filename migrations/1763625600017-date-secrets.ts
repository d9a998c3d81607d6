import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A nullable column without a default: no row is written, and the lock on `application` is over at once. */
export class DateSecrets1763625600017 implements MigrationInterface {
  name = 'DateSecrets1763625600017';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- when its secret was last changed; null: never, as far as is known
      ALTER TABLE application ADD COLUMN secret_set_at timestamptz;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE application DROP COLUMN secret_set_at');
  }
}
