import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freezeEmbedded } from '../../src/infra/postgres/freeze-embedded.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { Installation } from '../support/installation.js';
import { partitionsBetween } from '../../src/ledger/partitions.js';
import { TestLedger } from '../support/ledger.js';
import { embedded, real, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

let prepared: PreparedStack;
let test: TestLedger;
const never = new AbortController().signal;

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
      await freezeEmbedded(test.postgres, never, 200);
      expect(Math.max(...(await databases()).map(({ age }) => age))).toBeLessThanOrEqual(200);
    }
  });

  it('are left in tables while they are young', async () => {
    await freezeEmbedded(test.postgres, never);
    await useUp(300);
    await freezeEmbedded(test.postgres, never);
    for (const { age } of await databases()) expect(age).toBeGreaterThanOrEqual(300);
  });

  it('are left as they are by a process that stops', async () => {
    await freezeEmbedded(test.postgres, never);
    await useUp(300);
    await freezeEmbedded(test.postgres, AbortSignal.abort(), 200);
    for (const { age } of await databases()) expect(age).toBeGreaterThanOrEqual(300);
  });

  it('are freed without much of a log in front of the next checkpoint', async () => {
    await freezeEmbedded(test.postgres, never); // dropping the templates makes one as well
    await test.sql(`SELECT pg_logical_emit_message(false, 'test', repeat('x', 1048576)) FROM generate_series(1, 70)`);
    await freezeEmbedded(test.postgres, never, 0);
    const [log] = await test.sql<{ is_short: boolean }>(
      'SELECT pg_current_wal_lsn() - checkpoint_lsn < 33554432 AS is_short FROM pg_control_checkpoint()',
    );
    expect(log).toEqual({ is_short: true });
  });

  it('are old already in rows that are vacuumed while they are young', async () => {
    const [today] = partitionsBetween(Date.now(), Date.now()).filter(({ table }) => table === 'delivery');
    await insertDeliveries((text, values) => test.sql(text, values), {
      notifications: 1500,
      subscriptionIds: [randomUUID()],
      state: 'queued',
    });
    const pages = await eventually(async () => {
      await test.partitions.vacuumEmbedded(); // once Postgres has counted the rows
      const [row] = await test.sql<{ visible: number; frozen: number }>(
        'SELECT relallvisible AS visible, relallfrozen AS frozen FROM pg_class WHERE relname = $1',
        [today!.name],
      );
      return row!.visible > 10 && row;
    });
    expect(pages!.frozen).toBe(pages!.visible);
  });

  it('can be used again where a template was being dropped as the process was killed', async () => {
    // So it is from the beginning of the DROP on.
    await test.sql(
      `UPDATE pg_database SET datistemplate = false, datconnlimit = -2 WHERE datname IN ('template0', 'template1')`,
    );
    await freezeEmbedded(test.postgres, never);
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
    await freezeEmbedded(test.postgres, never, 0);
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
