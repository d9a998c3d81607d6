import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * When an operator removed a channel (docs/decisions/0088). Its row stays, because the bodies of its notifications are
 * kept as long as it says. The new column takes `channel` for an instant, without a rewrite; processes of the version
 * before go on to have the channel.
 */
export class RemoveChannels1763625600026 implements MigrationInterface {
  name = 'RemoveChannels1763625600026';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE channel ADD COLUMN deleted_at timestamptz');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE channel DROP COLUMN deleted_at');
  }
}
