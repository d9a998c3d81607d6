import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Events of this moment, for those who listen to `GET /admin/v1/events`: written only while somebody does, and kept for
 * minutes. New tables only: no lock on anything in use.
 */
export class CreateLiveEvents1763625600011 implements MigrationInterface {
  name = 'CreateLiveEvents1763625600011';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- One row: until when every process writes down what happens.
      CREATE TABLE live_listener (expires_at timestamptz NOT NULL);
      CREATE UNIQUE INDEX live_listener_one ON live_listener ((true));
      INSERT INTO live_listener VALUES ('-infinity');

      -- Not logged: it costs no flush, and after a crash of Postgres nobody misses it. Its numbers are logged, so that they go on rising.
      CREATE SEQUENCE live_event_id;
      CREATE UNLOGGED TABLE live_event (
        id      bigint PRIMARY KEY DEFAULT nextval('live_event_id'),
        at      timestamptz NOT NULL DEFAULT now(),
        -- one JSON object, with its kind as 'event'
        event   text NOT NULL
      );
      CREATE INDEX live_event_at ON live_event (at);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE live_event; DROP SEQUENCE live_event_id; DROP TABLE live_listener');
  }
}
