import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * How long the values of an entry of the audit log are, so that a page can end before they are too many without reading
 * them. Entries that are there keep null, as do those that a process of the version before writes: they are measured
 * when they are read. Takes a lock on `audit_entry` and its partitions (ACCESS EXCLUSIVE) for a moment, without reading
 * any.
 */
export class MeasureEntries1763625600048 implements MigrationInterface {
  name = 'MeasureEntries1763625600048';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- of before and after together, as text; null: of an older version
      ALTER TABLE audit_entry ADD COLUMN bytes integer;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query('ALTER TABLE audit_entry DROP COLUMN bytes');
  }
}
