import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Every change of the configuration, and what operators do with deliveries, is noted here in its own transaction.
 * Partitioned by month, so that retention drops partitions; the program itself makes them (src/audit/months.ts). New
 * tables only: no lock on anything in use.
 */
export class CreateAuditLog1763625600005 implements MigrationInterface {
  name = 'CreateAuditLog1763625600005';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE SEQUENCE audit_entry_nr;
      CREATE TABLE audit_entry (
        at         timestamptz NOT NULL,
        nr         bigint NOT NULL DEFAULT nextval('audit_entry_nr'),
        -- client id of the application that asked for it; null: nobody did, it was Heraut itself
        client     text,
        -- IP address that the request came from
        address    text,
        request_id text,
        -- kind of subject and what was done to it: 'subscription.paused'
        action     text NOT NULL,
        -- kind and id: 'subscription/<uuid>'
        subject    text NOT NULL,
        -- The fields that differ, without secrets; null: it was not there, or is not there any more.
        before     json,
        after      json,
        -- names of the secrets that are others than before
        changed_secrets text[] NOT NULL,
        PRIMARY KEY (at, nr)
      ) PARTITION BY RANGE (at);
      CREATE INDEX audit_entry_client ON audit_entry (client, at, nr);
      CREATE INDEX audit_entry_action ON audit_entry (action, at, nr);
      -- A subject may be a URL that is too long for an index.
      CREATE INDEX audit_entry_subject ON audit_entry (left(subject, 200), at, nr);

      CREATE FUNCTION refuse_to_change_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION 'The audit log is append-only: % is refused.', TG_OP;
        END
      $$;
      CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_entry
        FOR EACH ROW EXECUTE FUNCTION refuse_to_change_audit_entry();
      CREATE TRIGGER no_truncate BEFORE TRUNCATE ON audit_entry
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_change_audit_entry();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      'DROP TABLE audit_entry; DROP SEQUENCE audit_entry_nr; DROP FUNCTION refuse_to_change_audit_entry',
    );
  }
}
