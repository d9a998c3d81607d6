import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The data that rarely change and every process keeps in memory. Each row carries the `version` (the catalogue version)
 * of its last change; rows are tombstoned, never deleted, so that "everything since version n" is one index scan. New
 * tables only: no lock on anything in use.
 */
export class CreateCatalogue1763625600000 implements MigrationInterface {
  name = 'CreateCatalogue1763625600000';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE catalogue (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        version   bigint NOT NULL
      );
      INSERT INTO catalogue (version) VALUES (1);

      CREATE TABLE channel (
        id                 uuid PRIMARY KEY,
        name               text NOT NULL UNIQUE,
        documentation_link text NOT NULL,
        filters            text[] NOT NULL,
        -- which fields make two notifications the same; null: none are ever the same
        deduplicate_by     text[],
        -- seconds during which a second one counts as the same
        deduplicate_within int NOT NULL DEFAULT 604800,
        -- seconds after its creation that a notification is not sent any more; null: always sent
        max_age            int,
        version           bigint NOT NULL,
        created_at         timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX channel_version ON channel (version);

      CREATE TABLE application (
        id           uuid PRIMARY KEY,
        client_id    text NOT NULL,
        label        text NOT NULL,
        secret       text NOT NULL,
        scopes       text[] NOT NULL,
        is_superuser boolean NOT NULL,
        version     bigint NOT NULL,
        created_at   timestamptz NOT NULL DEFAULT now(),
        deleted_at   timestamptz
      );
      CREATE UNIQUE INDEX application_client_id ON application (client_id) WHERE deleted_at IS NULL;
      CREATE INDEX application_version ON application (version);

      CREATE TABLE subscription (
        id              uuid PRIMARY KEY,
        owner_client_id text NOT NULL,
        callback_url    text NOT NULL,
        auth            text NOT NULL,
        -- [{ "channel": name, "filters": { name: value } }]; entries are alternatives. json keeps the order of the names
        channels        json NOT NULL,
        -- 'at-least-once' or 'at-most-once'; null: as its owner's other subscriptions
        delivery_guarantee text,
        -- its receiver answered 410 Gone: nothing is sent until it is registered anew
        disabled_at     timestamptz,
        -- an operator paused it: its deliveries are held
        paused_at       timestamptz,
        -- seconds one call may take; null: as the setting says
        timeout_seconds float8,
        -- calls that each worker may have open at once; null: as many as its endpoint gets
        max_concurrency int,
        -- calls a second, over all workers together; null: no limit
        rate_per_second float8,
        -- 'none', or 'per-object': a later notification about the same object waits for the earlier one
        ordering        text NOT NULL DEFAULT 'none',
        version        bigint NOT NULL,
        created_at      timestamptz NOT NULL DEFAULT now(),
        deleted_at      timestamptz
      );
      CREATE INDEX subscription_version ON subscription (version, id);

      CREATE TABLE retry_policy (
        singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
        policy    jsonb NOT NULL,
        version  bigint NOT NULL
      );
      CREATE TABLE subscription_retry_policy (
        subscription_id uuid PRIMARY KEY REFERENCES subscription,
        -- null: removed, the general policy counts
        policy          jsonb,
        version        bigint NOT NULL
      );
      CREATE INDEX subscription_retry_policy_version ON subscription_retry_policy (version);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'DROP TABLE subscription_retry_policy, retry_policy, subscription, application, channel, catalogue',
    );
  }
}
