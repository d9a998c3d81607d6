import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Nullable columns without a default: no row of `process` is written, and the lock on it is over at once. */
export class CreateActivity1763625600015 implements MigrationInterface {
  name = 'CreateActivity1763625600015';

  async up(queryRunner: QueryRunner): Promise<void> {
    // Behind a backup it would keep everybody waiting: it gives up, and is tried again (Postgres.migrate).
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(`
      -- Counts of what happened, in buckets of ten seconds, a minute and an hour. Each process adds what it has counted.
      CREATE TABLE activity (
        bucket_seconds  int NOT NULL,
        -- all, channel, application, subscription; took: delivered, by the time since acceptance (src/activity/steps.ts)
        kind            text COLLATE "C" NOT NULL,
        -- name, client id or id; empty for 'all'; of 'took' the number of the step
        id              text COLLATE "C" NOT NULL,
        -- its beginning
        at              timestamptz NOT NULL,
        accepted        bigint NOT NULL,
        duplicates      bigint NOT NULL,
        delivered       bigint NOT NULL,
        failed_attempts bigint NOT NULL,
        gave_up         bigint NOT NULL,
        -- when something was last counted, to ten seconds
        last_at         timestamptz NOT NULL,
        PRIMARY KEY (bucket_seconds, kind, id, at)
      ) WITH (fillfactor = 70); -- a bucket is written again and again, and no column of an index changes
      CREATE INDEX activity_at ON activity (bucket_seconds, at);

      -- Values that a dispatcher found when it last measured (src/dispatching/measurements.service.ts), one row a measurement.
      CREATE TABLE measurement (
        name        text PRIMARY KEY,
        measured_at timestamptz NOT NULL,
        found       jsonb NOT NULL
      );

      -- null in what an older version writes
      ALTER TABLE process ADD COLUMN version text, ADD COLUMN node text, ADD COLUMN host text, ADD COLUMN started_at timestamptz;
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE process DROP COLUMN version, DROP COLUMN node, DROP COLUMN host, DROP COLUMN started_at;
      DROP TABLE measurement;
      DROP TABLE activity;
    `);
  }
}
