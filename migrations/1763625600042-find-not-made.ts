import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Finds the deliveries that wait because no call could be made for them (src/alerts/not-made.ts), by subscription. No
 * usual delivery is ever in it: one has an error only once a call has failed, which is an attempt. Its condition
 * follows from that of no other statement. Reads all deliveries once; meanwhile nobody else writes any.
 */
export class FindNotMade1763625600042 implements MigrationInterface {
  name = 'FindNotMade1763625600042';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Where writers are long in their transactions, it would keep all others waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE INDEX delivery_not_made ON delivery (subscription_id, notification_id)
        WHERE last_error IS NOT NULL AND attempts = 0 AND replays = 0 AND held_for IS NULL
          AND state IN ('queued', 'waiting', 'sending');
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('DROP INDEX delivery_not_made');
  }
}
