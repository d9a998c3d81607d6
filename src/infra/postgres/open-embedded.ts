import { PGlite } from '@electric-sql/pglite';
import { createPgConfig } from '@electric-sql/pglite/node-postgres';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { lockDirectory } from './directory-lock.js';
import { explainDirectory } from './directory-trouble.js';
import { CrashWatch } from './embedded-crash.js';
import { refuseOtherVersion } from './embedded-version.js';
import { keepPrivate } from './keep-private.js';
import { refuseMoved } from './moved-directory.js';
import { poolOf, type CommonOptions, type OpenDatabase } from './open-database.js';
import { countPools } from './postgres.metrics.js';
import { preferIndexes } from './session-settings.js';

/**
 * Postgres writes to all of it at every start. With half of its default of 128 MB a process has some 70 MB less; reads
 * and writes at random in a table of 80 MB took as long. With 32 MB they took a tenth longer.
 */
const memoryOfEmbedded = ['-c', 'shared_buffers=64MB'];

/**
 * After a checkpoint (checkpoint-embedded.ts) PostgreSQL keeps as many empty segments of the log as the one before had
 * filled, within these bounds: 32 MB, two segments, is the least that it takes. Where there may be origins of
 * replication, which nobody uses here, a checkpoint writes a file about them, and where that finds no room the database
 * crashes; of all else that a checkpoint writes to a full disk, only the checkpoint fails.
 */
const logOfEmbedded = [
  ...['-c', 'min_wal_size=32MB', '-c', 'max_wal_size=64MB'],
  ...['-c', 'max_active_replication_origins=0'],
];

/** @throws {CannotConnect} where the directory is of no use */
export async function openEmbedded(directory: string, common: CommonOptions): Promise<OpenDatabase> {
  const explain = (error: unknown) => explainDirectory(directory, error);
  let unlock = () => {};
  try {
    unlock = await lockDirectory(directory);
    refuseMoved(directory);
    refuseOtherVersion(directory);
    const cluster = join(directory, 'pglite');
    keepPrivate(cluster);
    // Of a process that was killed. A server removes them in the process that starts all others, which PGlite lacks.
    rmSync(join(cluster, 'base', 'pgsql_tmp'), { recursive: true, force: true });
    const startParams = [...PGlite.defaultStartParams, ...memoryOfEmbedded, ...logOfEmbedded];
    const watch = new CrashWatch(directory);
    const pglite = await PGlite.create(cluster, { startParams, onStderr: watch.onStderr });
    watch.guard(pglite);
    const extra = { ...createPgConfig(pglite), max: 1, idleTimeoutMillis: 0, connectionTimeoutMillis: 30_000 };
    const dataSource = new DataSource({ ...common, extra, logging: false } as DataSourceOptions);
    await dataSource.initialize();
    await pglite.exec(preferIndexes);
    const pool = poolOf(dataSource);
    const uncount = countPools({ hot: pool }); // one connection for everything
    return {
      dataSource,
      upkeep: dataSource,
      checks: dataSource,
      pool,
      isEmbedded: true,
      explain,
      crashed: watch.crashed,
      close: async () => {
        uncount();
        if (!watch.hasCrashed) await pglite.close(); // which writes
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw explain(error);
  }
}
