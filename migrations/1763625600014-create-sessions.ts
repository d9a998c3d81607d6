import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Users who are signed in, and the tickets by which an operator signs in at the machine itself (docs/decisions/0050).
 * New tables; the audit log is locked for a moment, to say how the user of a change had signed in.
 */
export class CreateSessions1763625600014 implements MigrationInterface {
  name = 'CreateSessions1763625600014';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE TABLE session (
        -- SHA-256, in base64url, of the token in the user's cookie, which is kept nowhere
        token_hash text PRIMARY KEY,
        -- 'oidc:<issuer>#<subject>', or 'client:<client id>' of the application whose secret was shown
        user_id    text NOT NULL,
        -- for people
        name       text NOT NULL,
        role       text NOT NULL CHECK (role IN ('viewer', 'operator', 'administrator')),
        via        text NOT NULL CHECK (via IN ('oidc', 'password', 'ticket')),
        -- Of the token, by the secret of that application: with another secret the session is over. null: 'oidc'
        signature  text,
        began_at   timestamptz NOT NULL,
        -- unless it is used before
        ends_at    timestamptz NOT NULL,
        -- however much it is used
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX session_of_user ON session (user_id);
      CREATE INDEX session_ends ON session (ends_at);

      -- Deleted by being used.
      CREATE TABLE sign_in_ticket (
        token_hash text PRIMARY KEY,
        -- of the application that asked for it
        client_id  text NOT NULL,
        -- of the token, by the secret of that application
        signature  text NOT NULL,
        expires_at timestamptz NOT NULL
      );
      CREATE INDEX sign_in_ticket_expires ON sign_in_ticket (expires_at);

      -- How the user had signed in whose name is in client; null: client is the client id of an application, or null
      ALTER TABLE audit_entry ADD COLUMN via text;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE session, sign_in_ticket; ALTER TABLE audit_entry DROP COLUMN via');
  }
}
