import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readSettings } from '../../src/config/settings.js';
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
});
