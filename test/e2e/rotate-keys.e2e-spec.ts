import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { newEntry } from '../../src/secrets/key-ring.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { secretWatch } from '../support/secret-watch.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { signToken } from '../support/tokens.js';

const [first, second] = [newEntry(), newEntry()];
const idOf = (entry: string) => entry.split(':')[0]!;

interface Ended {
  status: number | null;
  lines: string[];
  errors: string;
}

async function run(program: string, settings: Record<string, string>): Promise<Ended> {
  const file = fileURLToPath(new URL(`../../dist/${program}`, import.meta.url));
  const child = spawn(process.execPath, [file], {
    env: { PATH: process.env.PATH, TZ: 'UTC', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString('utf8')));
  child.stderr.on('data', (bytes: Buffer) => (errors += bytes.toString('utf8')));
  const [status] = (await once(child, 'close')) as [number | null];
  secretWatch.knowSettings(settings);
  secretWatch.line(output + errors);
  return { status, lines: output.split('\n').filter((line) => line !== ''), errors };
}

describe('keys of secrets', () => {
  let database: TestDatabase;
  let heraut: HerautProcess;

  beforeAll(async () => {
    database = await createDatabase();
    heraut = await HerautProcess.start({
      settings: { DATABASE_URL: database.url, SECRET_KEYS: [first, second].join(',') },
    });
  });
  afterAll(async () => {
    await heraut.kill9();
    await database.drop();
  });

  async function storedWith(): Promise<string[]> {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query<{ key: string }>(
      'SELECT DISTINCT secret_key_of(secret) AS key FROM application',
    );
    await client.end();
    return rows.map(({ key }) => key);
  }

  it('are replaced while Heraut runs, after which the old one is not needed, and missing ones are refused', async () => {
    const body = { clientId: 'client', label: 'client', scopes: ['notificaties.consumeren'] };
    const { secret } = (await heraut.call('POST', '/admin/v1/applications', { body })).body as { secret: string };
    expect(await storedWith()).toEqual([idOf(first)]);

    const settings = { DATABASE_URL: database.url };
    const rotated = await run('rotate-keys.js', { ...settings, SECRET_KEYS: [second, first].join(',') });
    expect({ status: rotated.status, errors: rotated.errors }).toEqual({ status: 0, errors: '' });
    const told = rotated.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(told).toMatchObject([
      { event: 'secrets.rotating', place: 'application.secret', rewritten: 1 },
      { event: 'secrets.rotated', key: idOf(second), rewritten: 1, otherKeysInUse: [] },
    ]);
    expect(await storedWith()).toEqual([idOf(second)]);
    const token = signToken({ clientId: 'client', secret });
    expect((await heraut.call('GET', '/api/v1/abonnement', { token })).status).toBe(200);

    for (const program of ['main.js', 'rotate-keys.js']) {
      const refused = await run(program, { ...settings, SECRET_KEYS: first });
      expect(refused.status).toBe(1);
      expect(refused.errors).toContain(`or are others under the same ids: ${idOf(second)}. Nothing was changed.`);
      expect(refused.errors).not.toContain('Heraut cannot start');
      expect(refused.errors).not.toContain('    at '); // no stack
    }
    const nowhere = await run('rotate-keys.js', { DATA_DIR: '/nonexistent/data', SECRET_KEYS: second });
    expect(nowhere).toMatchObject({ status: 1, errors: expect.stringContaining('there is no embedded database in') });
    const without = await run('rotate-keys.js', { ...settings, SECRET_KEYS: '' });
    expect(without.errors).toContain(`or are others under the same ids: ${idOf(second)}.`);
    expect(await storedWith()).toEqual([idOf(second)]);
  });
});
