import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSettings } from '../../src/config/settings.js';
import { majorOfEmbedded } from '../../src/infra/postgres/embedded-version.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { embedded, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe('the directory of the embedded database, when it is opened', () => {
  let prepared: PreparedStack;
  let cluster: string;

  beforeEach(async () => {
    prepared = await embedded.prepare();
    cluster = join(prepared.settings.DATA_DIR!, 'pglite');
  });
  afterEach(() => prepared.release());

  const open = () => Postgres.open(readSettings(prepared.settings), []);

  it('is closed to other users, where others may look into DATA_DIR and whoever made it let them', async () => {
    await chmod(prepared.settings.DATA_DIR!, 0o755);
    await chmod(cluster, 0o755);
    const postgres = await open();
    expect((await stat(cluster)).mode & 0o777).toBe(0o700);
    await postgres.close();
  });

  it('is of the version of PostgreSQL that is known beforehand', async () => {
    expect(await readFile(join(cluster, 'PG_VERSION'), 'utf8')).toBe(`${majorOfEmbedded}\n`);
    const postgres = await open();
    const [row] = await postgres.dataSource.query<{ version: number }[]>(
      `SELECT current_setting('server_version_num')::int / 10000 AS version`,
    );
    expect(row!.version).toBe(majorOfEmbedded);
    await postgres.close();
  });

  it('is refused with both versions and the way out, where another version made it', async () => {
    await writeFile(join(cluster, 'PG_VERSION'), '17\n');
    await expect(open()).rejects.toThrow(
      /it was made by PostgreSQL 17, and this version of Heraut has \d+\. .*`npm run move-to-postgres`/,
    );
  });

  it('is rid of the temporary files of a process that was killed, and of no others', async () => {
    const temporary = join(cluster, 'base', 'pgsql_tmp');
    await mkdir(temporary, { recursive: true });
    await writeFile(join(temporary, 'pgsql_tmp42.900'), 'rows to be sorted');
    const postgres = await open();
    expect(existsSync(temporary)).toBe(false);
    await postgres.dataSource.query(`SET work_mem = '64kB'`);
    const [row] = await postgres.dataSource.query<{ sorted: number }[]>(
      'SELECT count(*)::int AS sorted FROM (SELECT nr FROM generate_series(1, 50000) AS nr ORDER BY -nr OFFSET 0) AS all_of_them',
    );
    expect(row!.sorted).toBe(50_000);
    expect(existsSync(temporary)).toBe(true); // it was too much to be sorted without
    await postgres.close();
  });
});
