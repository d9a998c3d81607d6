import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Work that an operator asks for on a selection of deliveries: to send them again, to cancel them, or to close dead
 * letters. The new column has no default, so no row is written; its lock is held for an instant.
 */
export class CreateReplays1763625600007 implements MigrationInterface {
  name = 'CreateReplays1763625600007';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE TABLE replay (
        -- UUIDv7, so that they are in the order in which they were made
        id              uuid PRIMARY KEY,
        kind            text NOT NULL CHECK (kind IN ('replay', 'cancel', 'close')),
        selection       jsonb NOT NULL,
        -- states of the deliveries that are meant
        states          text[] NOT NULL,
        only_missed     boolean NOT NULL,
        -- deliveries a second; null: as fast as the ledger takes it
        rate_per_second float8,
        start_at        timestamptz,
        stop_at         timestamptz,
        note            text,
        state           text NOT NULL CHECK (state IN ('scheduled', 'running', 'paused', 'done', 'cancelled', 'stopped')),
        -- stopped: why
        stopped_because text,
        -- how many it was found to mean when it was made, and whether all were counted
        counted         int NOT NULL,
        is_count_whole  boolean NOT NULL,
        -- it has looked at all up to this delivery; what follows up to before_id, which is no longer meant, is still to be looked at
        after_notification uuid NOT NULL,
        after_subscription uuid NOT NULL,
        before_id       uuid NOT NULL,
        -- deliveries that it found, that it has sent, cancelled or closed, and that it passed over: { reason: count }
        found           int NOT NULL DEFAULT 0,
        done            int NOT NULL DEFAULT 0,
        skipped         jsonb NOT NULL DEFAULT '{}',
        -- deliveries that its rate allowed and that were not sent, when that was reckoned last
        credit          float8 NOT NULL DEFAULT 0,
        credited_at     timestamptz NOT NULL DEFAULT now(),
        -- when a dispatcher looks at it again; null: it has ended, or is paused without an end
        next_step_at    timestamptz,
        created_at      timestamptz NOT NULL DEFAULT now(),
        -- client id
        created_by      text,
        started_at      timestamptz,
        ended_at        timestamptz
      ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
      CREATE INDEX replay_step ON replay (next_step_at) WHERE next_step_at IS NOT NULL;
      CREATE INDEX replay_ended ON replay (ended_at) WHERE ended_at IS NOT NULL;
      -- Two at the same time would both find that the subscription has no delivery, and order by object would be lost between them.
      CREATE UNIQUE INDEX replay_everything_for ON replay ((selection ->> 'everythingFor')) WHERE ended_at IS NULL;

      -- The work of an operator that last sent it again, cancelled or closed it.
      ALTER TABLE delivery ADD COLUMN replay_id uuid;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('ALTER TABLE delivery DROP COLUMN replay_id; DROP TABLE replay');
  }
}
