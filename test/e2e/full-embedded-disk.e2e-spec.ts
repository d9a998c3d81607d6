import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.js';
import { Installation } from '../support/installation.js';
import { isAlive } from '../support/spawn-heraut.js';
import { embedded, type PreparedStack } from '../support/stacks.js';

const preload = fileURLToPath(new URL('../support/full-log-disk.mjs', import.meta.url));

/** Nearly as long as a notification may be, and no shorter in Postgres' log. */
const bulky = () =>
  Object.fromEntries(Array.from({ length: 900 }, (_, key) => [`k${key}`, randomBytes(750).toString('base64')]));

describe('an embedded Postgres whose log finds no room on its disk', () => {
  let prepared: PreparedStack;
  let full: string;

  beforeEach(async () => {
    prepared = await embedded.prepare();
    full = join(prepared.settings.DATA_DIR!, 'full');
    prepared.settings = { ...prepared.settings, NODE_OPTIONS: `--import ${preload}`, FULL_LOG_DISK: full };
    await writeFile(full, '');
  });
  afterEach(() => prepared.release());

  it('ends its process with status 1 and says why; with room again, it starts and has all that was accepted', async () => {
    const heraut = await Installation.start(prepared);
    const { api } = heraut;
    const pid = api.pid!;
    const ended = api.ended();
    const channel = await heraut.createChannel();
    const accepted: string[] = [];
    const answers: number[] = [];
    const publisher = async () => {
      while (isAlive(pid)) {
        const answer = await heraut.tryToPublish(channel, { kenmerken: bulky() }).catch(() => undefined);
        if (answer) answers.push(answer.status);
        if (answer?.status === 201) accepted.push(answer.headers.get('notification-id')!);
      }
    };
    await Promise.all([publisher(), publisher(), publisher()]);

    expect(await ended).toBe(1);
    expect(answers.filter((status) => status !== 201 && status !== 503)).toEqual([]);
    expect(api.logs.find(({ event }) => event === 'postgres.crashed')).toMatchObject({
      level: 'error',
      error: expect.objectContaining({
        message: expect.stringMatching(
          /^The embedded database in DATA_DIR \(.*\) cannot be used: PANIC: could not write to file .*: No space left on device\. Its disk is full: make room there, and start again\.$/,
        ),
      }),
    });
    expect(accepted.length).toBeGreaterThan(0);

    await rm(full);
    await api.start();
    for (const id of accepted)
      await eventually(async () => (await api.call('GET', `/admin/v1/notifications/${id}`)).status === 200, id);
    await heraut.end();
  });
});
