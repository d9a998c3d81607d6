import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Finds what may be handed out without passing over what is due and not in line yet (delivery_not_in_line), however
 * much is scheduled for the same moment. delivery_due finds both. Reads all deliveries once; meanwhile nobody else
 * writes any.
 */
export class DueInTurn1763625600022 implements MigrationInterface {
  name = 'DueInTurn1763625600022';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Where writers are long in their transactions, it would keep all others waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE INDEX delivery_due_in_turn ON delivery (next_at)
        WHERE state = 'waiting' AND (object_key IS NULL OR turn_nr = 0);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX delivery_due_in_turn');
  }
}
