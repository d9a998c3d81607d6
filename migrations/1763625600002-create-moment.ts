import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What only the moment needs: locks and seals where there is no Redis, and which processes are alive. Unlogged: a crash of
 * Postgres empties them, which costs at most a duplicate with the same webhook-id (docs/decisions/0007).
 * New tables only: no lock on anything in use.
 */
export class CreateMoment1763625600002 implements MigrationInterface {
  name = 'CreateMoment1763625600002';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE UNLOGGED TABLE idempotency_key (
        key          text PRIMARY KEY,
        -- null once sealed
        owner        text,
        request_hash text,
        -- json, not jsonb: as it was sealed, with characters that jsonb refuses
        outcome      json,
        expires_at   timestamptz NOT NULL
      );
      CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_at);

      CREATE UNLOGGED TABLE process (
        id         text PRIMARY KEY,
        roles      text[] NOT NULL,
        expires_at timestamptz NOT NULL
      );

      -- How far the workers are: every delivery handed to this lane of the queue before then has been taken from it.
      CREATE UNLOGGED TABLE lane_progress (
        lane        text PRIMARY KEY,
        taken_up_to timestamptz NOT NULL
      );
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE lane_progress, process, idempotency_key');
  }
}
