import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A search by owner finds the subscriptions that an application has, or had lately, however many were deleted: their
 * rows stay for ever, and all of them were read. No subscription can be changed while the index is made, for which the
 * table is read once.
 */
export class FindOwned1763625600046 implements MigrationInterface {
  name = 'FindOwned1763625600046';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(
      `CREATE INDEX subscription_owned ON subscription (owner_client_id, coalesce(deleted_at, 'infinity'))`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('DROP INDEX subscription_owned');
  }
}
