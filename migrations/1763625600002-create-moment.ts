import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Data of short life: locks and seals where there is no Redis, or it cannot be used, and which processes are alive.
 * Most are unlogged: a crash of Postgres empties them, which costs at most a duplicate with the same webhook-id
 * (docs/decisions/0007). New tables only: no lock on anything in use.
 */
export class CreateMoment1763625600002 implements MigrationInterface {
  name = 'CreateMoment1763625600002';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE UNLOGGED TABLE idempotency_key (
        key          text PRIMARY KEY,
        -- of the holder of the lock; null once sealed
        token        text,
        request_hash text,
        -- json, not jsonb: as it was sealed, with characters that jsonb refuses
        outcome      json,
        expires_at   timestamptz NOT NULL
      );
      CREATE INDEX idempotency_key_expiry ON idempotency_key (expires_at);

      -- When Redis was last given up because a process could not use it, and from when on it may be used again: in between,
      -- locks are in idempotency_key. Not unlogged: all processes must go on agreeing after a crash.
      CREATE TABLE redis_outage (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        began_at  timestamptz NOT NULL,
        ends_at   timestamptz NOT NULL,
        -- by how much the last report moved ends_at
        calm_ms   int NOT NULL
      );

      -- Logged: a crash of Postgres must not make living processes look dead.
      CREATE TABLE process (
        id           text PRIMARY KEY,
        roles        text[] NOT NULL,
        -- unless there is another sign of life before; -infinity: it said itself that it ends
        expires_at   timestamptz NOT NULL,
        -- since when it has shown signs of life without a gap
        steady_since timestamptz NOT NULL DEFAULT now()
      );

      -- How far each worker is with a lane of the queue. An old row does not count: its worker's chunks are back in the queue.
      CREATE UNLOGGED TABLE lane_progress (
        lane           text NOT NULL,
        process        text NOT NULL,
        newest_taken   timestamptz NOT NULL,
        -- of the chunks it has taken and not yet acknowledged; null when there are none
        oldest_unacknowledged timestamptz,
        reported_at    timestamptz NOT NULL,
        PRIMARY KEY (lane, process)
      );

      -- When the queue was last found missing and made anew: all that was handed out before is lost.
      CREATE UNLOGGED TABLE queue_creation (
        singleton  boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        created_at timestamptz NOT NULL
      );
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE queue_creation, lane_progress, process, redis_outage, idempotency_key');
  }
}
