import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';

/** Without a handler the signal itself would end a program, and the first process of a container not at all. */
describe('a program that waits for Postgres', () => {
  let directory: string;
  let silent: Server;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-stopped-'));
    await (await Postgres.open(readSettings({ DATA_DIR: directory }), [])).close();
    silent = createServer((socket) => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  afterAll(async () => {
    silent.close();
    await rm(directory, { recursive: true });
  });

  it.each([
    { program: 'dispatch-once.js', words: ['--once'], signal: 'SIGTERM', status: 143 },
    { program: 'dispatch-once.js', words: ['--once'], signal: 'SIGINT', status: 130 },
    { program: 'rotate-keys.js', words: [], signal: 'SIGTERM', status: 143 },
    { program: 'rotate-keys.js', words: [], signal: 'SIGINT', status: 130 },
    { program: 'move-to-postgres.js', words: [], signal: 'SIGTERM', status: 143 },
    { program: 'move-to-postgres.js', words: [], signal: 'SIGINT', status: 130 },
  ] as const)('ends by itself with status $status when told to: $program, $signal', async (told) => {
    const file = fileURLToPath(new URL(`../../dist/${told.program}`, import.meta.url));
    const connected = once(silent, 'connection');
    const { port } = silent.address() as AddressInfo;
    const child = spawn(process.execPath, [file, ...told.words], {
      env: {
        PATH: process.env.PATH,
        DATA_DIR: directory,
        DATABASE_URL: `postgres://heraut@127.0.0.1:${port}/heraut`,
        DATABASE_TIMEOUT: '300',
      },
      stdio: 'ignore',
    });
    const ended = once(child, 'close');
    await connected;
    child.kill(told.signal);
    expect(await ended).toEqual([told.status, null]);
    expect(await readdir(directory)).not.toContain('heraut.lock');
  });
});
