import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freezeEmbedded } from '../../src/infra/postgres/freeze-embedded.js';
import { Installation } from '../support/installation.js';
import { TestLedger } from '../support/ledger.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

let prepared: PreparedStack;
let test: TestLedger;

const open = async () => void (test = await TestLedger.open(prepared.settings));

const databases = () =>
  test.sql<{ name: string; age: number }>('SELECT datname AS name, age(datfrozenxid) FROM pg_database');

async function useUp(ids: number): Promise<void> {
  for (let used = 0; used < ids; used++) await test.sql('SELECT pg_current_xact_id()');
}

describe('the transaction ids of the embedded database', () => {
  beforeEach(async () => {
    prepared = await embedded.prepare();
    await open();
  });
  afterEach(() => test.close().then(prepared.release));

  it('can be used again once they are old, whichever table or database they are in', async () => {
    for (let round = 0; round < 2; round++) {
      await useUp(300);
      expect(Math.max(...(await databases()).map(({ age }) => age))).toBeGreaterThanOrEqual(300);
      await freezeEmbedded(test.postgres, 200);
      expect(Math.max(...(await databases()).map(({ age }) => age))).toBeLessThanOrEqual(200);
    }
  });

  it('are left in tables while they are young', async () => {
    await freezeEmbedded(test.postgres);
    await useUp(300);
    await freezeEmbedded(test.postgres);
    for (const { age } of await databases()) expect(age).toBeGreaterThanOrEqual(300);
  });

  it('can be used again where a template was being dropped as the process was killed', async () => {
    // So it is from the beginning of the DROP on.
    await test.sql(
      `UPDATE pg_database SET datistemplate = false, datconnlimit = -2 WHERE datname IN ('template0', 'template1')`,
    );
    await freezeEmbedded(test.postgres);
    expect((await databases()).map(({ name }) => name)).toEqual(['postgres']);
  });
});

describe('the transaction ids of a server', () => {
  beforeEach(async () => {
    prepared = await real.prepare();
    await open();
  });
  afterEach(() => test.close().then(prepared.release));

  it('are left to its autovacuum, and its other databases are as they were', async () => {
    await freezeEmbedded(test.postgres, 0);
    expect((await databases()).map(({ name }) => name)).toEqual(expect.arrayContaining(['template0', 'template1']));
  });
});

it('of the embedded database, its templates are dropped by its upkeep, and Heraut starts without them', async () => {
  prepared = await embedded.prepare();
  const start = () => Installation.start(prepared);
  await start().then((heraut) => heraut.end());
  const program = fileURLToPath(new URL('../../dist/dispatch-once.js', import.meta.url));
  const once = ['--liftoff-only', program, '--once'];
  await promisify(execFile)(process.execPath, once, { env: { PATH: process.env.PATH, ...prepared.settings } });
  const directories = await readdir(join(prepared.settings.DATA_DIR!, 'pglite', 'base'));
  expect(directories.filter((name) => name !== 'pgsql_tmp')).toHaveLength(1);
  const heraut = await start();
  try {
    await heraut.createChannel();
  } finally {
    await heraut.end();
  }
  await prepared.release();
});
