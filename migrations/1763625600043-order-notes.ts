import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The order in which notes of alerts are sent, those of operators first, and by indexes, as is found whether somebody
 * was sent one after another was given up. A process of the version before leaves the new column null: what it writes
 * waits for nothing, as before. Takes a lock on `alert_note` (ACCESS EXCLUSIVE) while it reads that small table a few
 * times; nothing that accepts or delivers waits for it.
 */
export class OrderNotes1763625600043 implements MigrationInterface {
  name = 'OrderNotes1763625600043';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep those that send notes waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- notes that tell its recipient of the same alerts and were not sent when it was written; null: of an older version
      ALTER TABLE alert_note ADD COLUMN after_ids uuid[];
      CREATE INDEX alert_note_unsent ON alert_note (channel, recipient) WHERE next_at IS NOT NULL;
      CREATE INDEX alert_note_due_operator ON alert_note (next_at)
        WHERE next_at IS NOT NULL AND content ->> 'audience' = 'operator';
      CREATE INDEX alert_note_sent ON alert_note (channel, recipient, sent_at)
        WHERE sent_at IS NOT NULL AND content ->> 'audience' = 'operator';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(
      'DROP INDEX alert_note_unsent, alert_note_due_operator, alert_note_sent; ALTER TABLE alert_note DROP COLUMN after_ids',
    );
  }
}
