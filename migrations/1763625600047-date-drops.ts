import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * When an operator asked to have dropped what a subscription holds: what came to be held since is not. A process of the
 * version before does not name the new column, and its drops get the time at which they are first noted; those that are
 * noted already, that of this migration. Takes a lock on `held_drop` (ACCESS EXCLUSIVE) for a moment, without reading
 * it.
 */
export class DateDrops1763625600047 implements MigrationInterface {
  name = 'DateDrops1763625600047';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep those waiting that pass turns on: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE held_drop ADD COLUMN noted_at timestamptz NOT NULL DEFAULT now()');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE held_drop DROP COLUMN noted_at');
  }
}
