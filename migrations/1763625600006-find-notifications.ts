import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The marks by which notifications are found (docs/decisions/0040). The new column takes `notification` for an instant,
 * without a rewrite; the index keeps those waiting that write `once_key` while its rows are read once: a second for
 * some millions.
 */
export class FindNotifications1763625600006 implements MigrationInterface {
  name = 'FindNotifications1763625600006';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- the publisher's key; null: it gave none, or it was accepted before there was this column
      ALTER TABLE notification ADD COLUMN request_key text;

      -- Of up to a thousand notifications, which marks they have. A search reads only those that may have the marks it looks for.
      CREATE TABLE digest (
        -- ids of the first and the last one of them
        from_id  uuid PRIMARY KEY,
        to_id    uuid NOT NULL,
        -- a Bloom filter; null: they may have any mark
        bits     bytea,
        -- one of them was given other content, or another delivery: it is to be written anew
        is_stale boolean NOT NULL DEFAULT false
      );
      -- In the row itself, and not compressed: a search reads a few bits of each.
      ALTER TABLE digest ALTER COLUMN bits SET STORAGE PLAIN;
      CREATE INDEX digest_stale ON digest (from_id) WHERE is_stale;

      -- The requests that were answered with an earlier notification, by that one.
      CREATE INDEX once_key_duplicate ON once_key (result_id) WHERE is_duplicate;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'DROP INDEX once_key_duplicate; DROP TABLE digest; ALTER TABLE notification DROP COLUMN request_key',
    );
  }
}
