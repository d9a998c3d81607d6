import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Where all tables are published (logical replication), Postgres changes no row of one without a primary key: nobody
 * could listen to live events. `live_listener` has one row, so that it is written anew at once; whoever reads or writes
 * it waits that long.
 */
export class KeyLiveListener1763625600049 implements MigrationInterface {
  name = 'KeyLiveListener1763625600049';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      ALTER TABLE live_listener ADD COLUMN singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton);
      DROP INDEX live_listener_one;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      CREATE UNIQUE INDEX live_listener_one ON live_listener ((true));
      ALTER TABLE live_listener DROP COLUMN singleton;
    `);
  }
}
