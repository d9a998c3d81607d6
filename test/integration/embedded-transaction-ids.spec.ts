import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freezeEmbedded } from '../../src/infra/postgres/freeze-embedded.js';
import { eventually } from '../support/eventually.js';
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

it('of the embedded database, its templates are dropped by Heraut as it runs, which then starts again', async () => {
  prepared = await embedded.prepare();
  for (let start = 0; start < 2; start++) {
    const heraut = await Installation.start(prepared);
    await eventually(async () => {
      const directories = await readdir(join(prepared.settings.DATA_DIR!, 'pglite', 'base'));
      return directories.filter((name) => name !== 'pgsql_tmp').length === 1;
    }, 'the templates to be dropped');
    await heraut.end();
  }
  await prepared.release();
});
