import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Counts as released also what is being sent at most once, until its call has ended: `queued` or `sending`. Its
 * condition is written so that it follows from that of the version before (`state <= 'queued'`), whose processes may
 * still run, and from no other index' one. The usual delivery at most once is in it as little as in the former one:
 * nothing was held of it. Reads all deliveries once; meanwhile nobody else writes or reads any.
 */
export class CountClaimed1763625600041 implements MigrationInterface {
  name = 'CountClaimed1763625600041';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    // The old one first: it needs the lock that a backup does not let it have, before anything was built in vain.
    await queryRunner.query(`
      DROP INDEX delivery_released;
      CREATE INDEX delivery_released ON delivery (subscription_id)
        WHERE state < 'delivered' AND state <> 'waiting' AND state <> 'held' AND held_for IS NOT NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      DROP INDEX delivery_released;
      CREATE INDEX delivery_released ON delivery (subscription_id) WHERE state <= 'queued' AND held_for IS NOT NULL;
    `);
  }
}
