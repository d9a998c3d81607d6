import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Tells whether a day past its retention has a notification that is still to be sent, of which no delivery is left.
 * Most have no such time: the index has no row of them. Reads all notifications once; meanwhile nobody accepts any.
 */
export class FindScheduled1763625600032 implements MigrationInterface {
  name = 'FindScheduled1763625600032';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every writer of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(
      'CREATE INDEX notification_scheduled ON notification (not_before) WHERE not_before IS NOT NULL',
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX notification_scheduled');
  }
}
