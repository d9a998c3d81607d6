import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The keys that deliveries are signed with. They are read together with their subscription, whose `version` each change
 * of them raises. A row goes when its key has ended: no secret is kept longer than it is of use. A new table only: the
 * foreign key takes a lock on `subscription` (SHARE ROW EXCLUSIVE) for a moment.
 */
export class CreateSigningKeys1763625600003 implements MigrationInterface {
  name = 'CreateSigningKeys1763625600003';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE TABLE signing_key (
        id              uuid PRIMARY KEY,
        subscription_id uuid NOT NULL REFERENCES subscription,
        -- 'v1': HMAC-SHA256; 'v1a': Ed25519
        scheme          text NOT NULL,
        -- with its prefix, whsec_ or whsk_; encrypted where secrets are
        secret          text NOT NULL,
        -- of 'v1a', with its prefix; null: of 'v1'
        public_key      text,
        created_at      timestamptz NOT NULL,
        -- from then on it does not sign; null: it was not rotated
        ends_at         timestamptz
      );
      CREATE INDEX signing_key_subscription ON signing_key (subscription_id);
      CREATE INDEX signing_key_end ON signing_key (ends_at) WHERE ends_at IS NOT NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE signing_key');
  }
}
