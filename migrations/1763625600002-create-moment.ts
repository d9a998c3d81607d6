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

      -- How far each worker is with a lane of the queue. What an older one held has gone back to the queue long ago.
      CREATE UNLOGGED TABLE lane_progress (
        lane           text NOT NULL,
        process        text NOT NULL,
        newest_taken   timestamptz NOT NULL,
        -- of what it has taken and not yet acknowledged; null when that is nothing
        oldest_in_hand timestamptz,
        reported_at    timestamptz NOT NULL,
        PRIMARY KEY (lane, process)
      );
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE lane_progress, process, idempotency_key');
  }
}
