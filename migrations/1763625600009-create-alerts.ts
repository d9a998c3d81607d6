import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Troubles that operators and owners of subscriptions are told of. New tables, and two columns that are null at first:
 * those take a lock on `subscription` and `application` (ACCESS EXCLUSIVE) for a moment, and rewrite nothing.
 */
export class CreateAlerts1763625600009 implements MigrationInterface {
  name = 'CreateAlerts1763625600009';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the two tables waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- where its owner is told of trouble with it; null: see its application
      ALTER TABLE subscription ADD COLUMN alert_email text;
      -- where the owner of its subscriptions is told of trouble with them; null: nowhere
      ALTER TABLE application ADD COLUMN alert_email text;

      -- No row: the rules have not been changed.
      CREATE TABLE alert_rules (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        rules     jsonb NOT NULL
      );

      -- The rules are evaluated by one process at a time: the one that has locked this row.
      CREATE TABLE alert_round (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        -- when the rules were last evaluated; null: never
        ended_at  timestamptz,
        -- when a note was last written
        noted_at  timestamptz,
        -- data that a later round compares with (src/alerts/memory.ts)
        memory    jsonb NOT NULL DEFAULT '{}'
      );
      INSERT INTO alert_round DEFAULT VALUES;

      CREATE TABLE alert (
        -- rises in the order in which they are opened
        id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        rule         text NOT NULL,
        -- kind and id: 'subscription/<uuid>'
        subject      text NOT NULL,
        -- when the trouble began, as far as is known
        since        timestamptz NOT NULL,
        opened_at    timestamptz NOT NULL DEFAULT now(),
        -- null: it goes on
        resolved_at  timestamptz,
        details      jsonb NOT NULL,
        -- when somebody was last told of this rule and subject, by this alert or the one before it; null: never
        noted_at     timestamptz,
        -- whether somebody was told of this one, and of its end
        is_noted     boolean NOT NULL DEFAULT false,
        is_end_noted boolean NOT NULL DEFAULT false,
        -- mail addresses of owners that were told of it
        told         text[] NOT NULL DEFAULT '{}'
      );
      CREATE UNIQUE INDEX alert_open ON alert (rule, subject) WHERE resolved_at IS NULL;
      CREATE INDEX alert_end_to_note ON alert (id) WHERE resolved_at IS NOT NULL AND is_noted AND NOT is_end_noted;
      CREATE INDEX alert_subject ON alert (rule, subject, id);
      CREATE INDEX alert_rule ON alert (rule, id);
      CREATE INDEX alert_resolved ON alert (resolved_at) WHERE resolved_at IS NOT NULL;

      -- Notes to send. They are written in the transaction that opens and resolves alerts, so none is lost.
      CREATE TABLE alert_note (
        -- also the webhook-id, or the first part of the Message-ID
        id         uuid PRIMARY KEY,
        -- 'webhook' or 'mail'
        channel    text NOT NULL,
        -- a mail address; of a webhook empty: its URL is a setting
        recipient  text NOT NULL,
        content    jsonb NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        attempts   int NOT NULL DEFAULT 0,
        -- when it is tried next, or the lease of the process that sends it ends; null: it was sent, or given up
        next_at    timestamptz DEFAULT now(),
        sent_at    timestamptz,
        given_up_at timestamptz,
        last_error text
      );
      CREATE INDEX alert_note_due ON alert_note (next_at) WHERE next_at IS NOT NULL;
      CREATE INDEX alert_note_given_up ON alert_note (given_up_at)
        WHERE given_up_at IS NOT NULL AND content ->> 'audience' = 'operator';
      CREATE INDEX alert_note_created ON alert_note (created_at);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TABLE alert_note, alert, alert_round, alert_rules;
      ALTER TABLE application DROP COLUMN alert_email;
      ALTER TABLE subscription DROP COLUMN alert_email`);
  }
}
