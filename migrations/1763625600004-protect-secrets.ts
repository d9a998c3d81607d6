import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * For secrets that are encrypted (docs/decisions/0032): which key each is encrypted with, under an index, so that those that are not
 * encrypted, or not with the current key, are found without reading the others.
 */
export class ProtectSecrets1763625600004 implements MigrationInterface {
  name = 'ProtectSecrets1763625600004';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Plain text of before that looks encrypted: marked as what it is.
      UPDATE application SET secret = 'enc::' || translate(encode(convert_to(secret, 'UTF8'), 'base64'), E'+/=\\n', '-_')
      WHERE secret LIKE 'enc:%';
      UPDATE subscription SET auth = 'enc::' || translate(encode(convert_to(auth, 'UTF8'), 'base64'), E'+/=\\n', '-_')
      WHERE auth LIKE 'enc:%';

      -- Null: there is no secret. '': it is not encrypted.
      CREATE FUNCTION secret_key_of(stored text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
      $$ SELECT CASE WHEN stored = '' THEN NULL WHEN stored LIKE 'enc:%' THEN split_part(stored, ':', 2) WHEN stored IS NOT NULL THEN '' END $$;

      CREATE INDEX application_secret_key ON application (secret_key_of(secret), id);
      CREATE INDEX subscription_auth_key ON subscription (secret_key_of(auth), id);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP INDEX subscription_auth_key, application_secret_key;
      DROP FUNCTION secret_key_of;
    `);
  }
}
