import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The text of a notification may go before its row does: after BODY_RETENTION_DAYS, or because an operator has it
 * erased (docs/decisions/0048). No table is rewritten: `notification` is locked for a moment, to let its text be null.
 */
export class CreateRetention1763625600012 implements MigrationInterface {
  name = 'CreateRetention1763625600012';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- null: it was erased
      ALTER TABLE notification ALTER COLUMN body DROP NOT NULL;
      -- null: as BODY_RETENTION_DAYS says
      ALTER TABLE channel ADD COLUMN body_retention_days int;

      -- The work of retention on a day, done and under way.
      CREATE TABLE retention_day (
        day             date PRIMARY KEY,
        -- the channels whose bodies of that day were erased
        erased_channels text[] NOT NULL DEFAULT '{}',
        -- the channels of the walk through the day that is under way, and the notification it has reached; null: none is
        walk_channels   text[],
        walk_reached    uuid,
        bodies_erased   bigint NOT NULL DEFAULT 0,
        body_bytes      bigint NOT NULL DEFAULT 0,
        -- past their retention, but a delivery of them is unfinished
        bodies_kept     bigint NOT NULL DEFAULT 0,
        bodies_erased_at timestamptz,
        exported_at     timestamptz,
        exported_file   text,
        exported_rows   bigint,
        exported_bytes  bigint,
        -- the last export that failed, until one succeeds
        export_failed_at timestamptz,
        export_failure  text,
        -- it was to be dropped, and has unfinished deliveries
        kept_at         timestamptz,
        dropped_at      timestamptz,
        -- when it was dropped; rows as the planner estimated them
        notifications   bigint,
        deliveries      bigint,
        attempts        bigint,
        bytes           bigint
      );
      -- Those that are counted in bodies_kept.
      CREATE TABLE kept_body (notification_id uuid PRIMARY KEY);

      -- Erasures that operators asked for. A rule of the dispatcher works them off.
      CREATE TABLE erasure (
        id               uuid PRIMARY KEY,
        notification_id  uuid,
        -- only until it is worked off: afterwards the hash is what is left
        main_object      text,
        main_object_hash text,
        state            text NOT NULL CHECK (state IN ('counting', 'counted', 'erasing', 'ending', 'done', 'abandoned')),
        requested_at     timestamptz NOT NULL DEFAULT now(),
        confirmed_at     timestamptz,
        done_at          timestamptz,
        -- the notification that the present walk has reached
        reached          uuid NOT NULL,
        found            bigint NOT NULL DEFAULT 0,
        erased           bigint NOT NULL DEFAULT 0,
        cancelled        bigint NOT NULL DEFAULT 0
      );
      CREATE INDEX erasure_open ON erasure (id) WHERE state IN ('counting', 'counted', 'erasing', 'ending');

      -- Deliveries of what was erased that a worker may still have in its memory, or be sending.
      CREATE TABLE erased_delivery (
        erasure_id      uuid NOT NULL,
        notification_id uuid NOT NULL,
        subscription_id uuid NOT NULL,
        replays         int NOT NULL,
        was_queued      boolean NOT NULL,
        -- when what came of its last call is in the ledger for certain; null: its key is not sealed yet
        gone_at         timestamptz,
        PRIMARY KEY (erasure_id, notification_id, subscription_id)
      );
    `);
  }

  /** Refused where something was erased: it cannot be brought back. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE notification ALTER COLUMN body SET NOT NULL;
      ALTER TABLE channel DROP COLUMN body_retention_days;
      DROP TABLE erased_delivery, erasure, kept_body, retention_day;
    `);
  }
}
