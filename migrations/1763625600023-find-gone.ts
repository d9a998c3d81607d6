import type { MigrationInterface, QueryRunner } from 'typeorm';

/** An erasure finds what is gone, and what is not sealed yet, however many deliveries of it wait for something else. */
export class FindGone1763625600023 implements MigrationInterface {
  name = 'FindGone1763625600023';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE INDEX erased_delivery_gone ON erased_delivery (erasure_id, gone_at) WHERE gone_at IS NOT NULL;
      CREATE INDEX erased_delivery_unsealed ON erased_delivery (erasure_id, notification_id, subscription_id)
        WHERE gone_at IS NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX erased_delivery_gone, erased_delivery_unsealed');
  }
}
