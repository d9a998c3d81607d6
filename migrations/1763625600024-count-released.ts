import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Counts what is released and not yet settled of one subscription, and by no other index: its condition was that of
 * delivery_queued and one more, and where the planner knew of nothing that is queued it took the index of what
 * everybody has in the queue. A range is not what that one asks for; `queued` is the first of the states. Reads all
 * deliveries once; meanwhile nobody else writes or reads any.
 */
export class CountReleased1763625600024 implements MigrationInterface {
  name = 'CountReleased1763625600024';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    // The old one first: it needs the lock that a backup does not let it have, before anything was built in vain.
    await queryRunner.query(`
      DROP INDEX delivery_released;
      CREATE INDEX delivery_released ON delivery (subscription_id) WHERE state <= 'queued' AND held_for IS NOT NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX delivery_released;
      CREATE INDEX delivery_released ON delivery (subscription_id) WHERE state = 'queued' AND held_for IS NOT NULL;
    `);
  }
}
