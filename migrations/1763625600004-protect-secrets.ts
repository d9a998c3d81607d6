import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * For secrets that are encrypted (docs/decisions/0032): which key each is encrypted with, under an index, so that those
 * that are not encrypted, or not with the current key, are found without reading the others. And a place for the
 * credentials of receivers (docs/decisions/0033).
 */
export class ProtectSecrets1763625600004 implements MigrationInterface {
  name = 'ProtectSecrets1763625600004';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- Plain text of before that looks encrypted: marked as what it is.
      UPDATE application SET secret = 'enc::' || translate(encode(convert_to(secret, 'UTF8'), 'base64'), E'+/=\\n', '-_')
      WHERE secret LIKE 'enc:%';
      UPDATE subscription SET auth = 'enc::' || translate(encode(convert_to(auth, 'UTF8'), 'base64'), E'+/=\\n', '-_')
      WHERE auth LIKE 'enc:%';

      -- Null: there is no secret. '': it is not encrypted.
      CREATE FUNCTION secret_key_of(stored text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
      $$ SELECT CASE WHEN stored = '' THEN NULL WHEN stored LIKE 'enc:%' THEN split_part(stored, ':', 2) WHEN stored IS NOT NULL THEN '' END $$;

      -- beside auth, what its receiver is shown with each call; JSON, null: nothing
      ALTER TABLE subscription ADD COLUMN credentials text;

      CREATE INDEX application_secret_key ON application (secret_key_of(secret), id);
      CREATE INDEX signing_key_secret_key ON signing_key (secret_key_of(secret), id);
      CREATE INDEX subscription_auth_key ON subscription (secret_key_of(auth), id);
      CREATE INDEX subscription_credentials_key ON subscription (secret_key_of(credentials), id) WHERE credentials IS NOT NULL;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX signing_key_secret_key, subscription_auth_key, application_secret_key;
      ALTER TABLE subscription DROP COLUMN credentials;
      DROP FUNCTION secret_key_of;
    `);
  }
}
