import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A delivery that is held for long, or alone, keeps its time: since when a subscription is no longer paused, and until
 * when a receiver asked to be left alone, apart from the pauses between our own probes. Locks two small tables for an
 * instant.
 */
export class KeepSchedules1763625600020 implements MigrationInterface {
  name = 'KeepSchedules1763625600020';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- null: it was not paused, as far as is known
      ALTER TABLE held_subscription ADD COLUMN resumed_at timestamptz;
      -- Read each second by every process; most of the table has none.
      CREATE INDEX held_subscription_backlog ON held_subscription (subscription_id) WHERE is_backlog;
      -- by a Retry-After with 429 or 503; null: it did not ask
      ALTER TABLE endpoint ADD COLUMN asked_until timestamptz;
      -- Our own pauses are no longer than that.
      UPDATE endpoint SET asked_until = next_probe_at WHERE next_probe_at > now() + interval '1 minute';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE endpoint DROP COLUMN asked_until;
      DROP INDEX held_subscription_backlog;
      ALTER TABLE held_subscription DROP COLUMN resumed_at;
    `);
  }
}
