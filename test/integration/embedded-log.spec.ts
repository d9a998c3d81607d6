import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { readSettings } from '../../src/config/settings.js';
import { checkpointEmbedded } from '../../src/infra/postgres/checkpoint-embedded.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { embedded, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

/** Nearly as long as a notification may be, and no shorter in Postgres' log. */
const bulky = () =>
  Object.fromEntries(Array.from({ length: 900 }, (_, key) => [`k${key}`, randomBytes(750).toString('base64')]));

let prepared: PreparedStack;

beforeEach(async () => {
  prepared = await embedded.prepare();
});
afterEach(() => prepared.release());

/** Of 16 MB each, in their order. */
async function segments(): Promise<string[]> {
  const names = await readdir(join(prepared.settings.DATA_DIR!, 'pglite', 'pg_wal'));
  return names.filter((name) => /^[0-9A-F]{24}$/.test(name)).toSorted();
}

describe('the log of the embedded database', () => {
  let postgres: Postgres;

  beforeEach(async () => {
    postgres = await Postgres.open(readSettings(prepared.settings), []);
  });
  afterEach(() => postgres.close());

  const lastCheckpoint = async () => {
    const rows = await postgres.dataSource.query<{ at: string }[]>(
      'SELECT checkpoint_lsn AS at FROM pg_control_checkpoint()',
    );
    return rows[0]!.at;
  };

  async function write(megabytes: number): Promise<void> {
    for (let written = 0; written < megabytes; written++)
      await postgres.dataSource.query(`SELECT pg_logical_emit_message(false, 'test', repeat('x', 1048576))`);
  }

  it('is removed without a new file, for which a full disk would have no room', async () => {
    const ofReplication = join(prepared.settings.DATA_DIR!, 'pglite', 'pg_logical');
    await rm(join(ofReplication, 'replorigin_checkpoint'), { force: true });
    await write(70);
    await checkpointEmbedded(postgres);
    const names = await readdir(ofReplication);
    expect(names.filter((name) => name.startsWith('replorigin'))).toEqual([]);
  });

  it('is left as it is while it is short', async () => {
    const before = await lastCheckpoint();
    await write(20);
    await checkpointEmbedded(postgres);
    expect(await lastCheckpoint()).toBe(before);
  });

  it('is removed up to the end once it is long, and leaves no more room taken after much than after little', async () => {
    for (const megabytes of [70, 300, 70]) {
      const [before, [first]] = [await lastCheckpoint(), await segments()];
      await write(megabytes);
      await checkpointEmbedded(postgres);
      expect(await lastCheckpoint()).not.toBe(before);
      const left = await segments();
      expect(left[0]! > first!).toBe(true);
      expect(left.length).toBeLessThanOrEqual(5);
    }
  });
});

it('is removed while Heraut runs and is published to', async () => {
  const heraut = await Installation.start(prepared);
  try {
    const channel = await heraut.createChannel();
    const [first] = await segments();
    for (let nr = 0; nr < 90; nr++) await heraut.publish(channel, { kenmerken: bulky() });
    await eventually(async () => (await segments())[0]! > first!, 'a checkpoint');
  } finally {
    await heraut.end();
  }
});
