import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The subject of an alert may be an address that is too long for an index: its alert could not be opened, and none that
 * was found with it. One index has its hash now, so that still none is open twice, and the other one its beginning.
 * `alert` has as many rows as there were troubles in the time they are kept; a round waits until both are made.
 */
export class FindLongSubjects1763625600044 implements MigrationInterface {
  name = 'FindLongSubjects1763625600044';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep every reader of the table waiting: it gives up, and is tried again
    // (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    // The cast reads backslashes as escapes; convert_to() may not be used in an index.
    await queryRunner.query(String.raw`
      DROP INDEX alert_open, alert_subject;
      CREATE UNIQUE INDEX alert_open ON alert (rule, sha256(replace(subject, '\', '\\')::bytea)) WHERE resolved_at IS NULL;
      CREATE INDEX alert_subject ON alert (rule, left(subject, 200), id);
    `);
  }

  /** Fails while there is an alert whose subject is too long. */
  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      DROP INDEX alert_open, alert_subject;
      CREATE UNIQUE INDEX alert_open ON alert (rule, subject) WHERE resolved_at IS NULL;
      CREATE INDEX alert_subject ON alert (rule, subject, id);
    `);
  }
}
