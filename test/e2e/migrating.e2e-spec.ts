import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { eventually } from '../support/eventually.js';
import { TestLedger } from '../support/ledger.js';
import { real, type PreparedStack } from '../support/stacks.js';

const migration = 'FindOwned1763625600046';

describe('a program that finds a migration to run', () => {
  let prepared: PreparedStack;
  let other: pg.Client;
  let child: ChildProcess;
  let output: string;
  let errors: string;

  beforeEach(async () => {
    prepared = await real.prepare();
    await (await TestLedger.open(prepared.settings)).close(); // migrates
    other = new pg.Client(prepared.settings.DATABASE_URL);
    await other.connect();
    await other.query('DROP INDEX subscription_owned');
    await other.query('DELETE FROM migrations WHERE name = $1', [migration]);
    [output, errors] = ['', ''];
  });
  afterEach(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await other.end();
    await prepared.release();
  });

  function start(name: string, settings: Record<string, string> = {}): Promise<unknown[]> {
    const words = name === 'dispatch-once.js' ? ['--once'] : [];
    child = spawn(process.execPath, [fileURLToPath(new URL(`../../dist/${name}`, import.meta.url)), ...words], {
      env: { PATH: process.env.PATH, PORT: '0', PROCESSES: '1', ...prepared.settings, ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout!.on('data', (text: Buffer) => (output += text.toString()));
    child.stderr!.on('data', (text: Buffer) => (errors += text.toString()));
    return once(child, 'close');
  }

  /** Those that are not JSON fail the test. */
  const logged = () =>
    output
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  it.each(['main.js', 'dispatch-once.js'])(
    'logs in lines of JSON with their time which one it runs, that it waits for a lock, and its end (%s)',
    async (name) => {
      await other.query('BEGIN; LOCK TABLE subscription IN ROW EXCLUSIVE MODE');
      const ended = start(name);
      await eventually(() => output.includes('postgres.migration-waits'), 'it to wait');
      await other.query('ROLLBACK');
      if (name === 'main.js') {
        await eventually(() => output.includes('"process.listening"'), 'it to listen');
        child.kill('SIGTERM');
      }
      expect(await ended).toEqual([0, null]);
      const lines = logged();
      for (const line of lines) expect(line).toMatchObject({ time: expect.any(String), level: expect.any(String) });
      expect(lines.slice(0, 3)).toMatchObject([
        { event: 'ledger.migrating', migration },
        { event: 'postgres.migration-waits', level: 'warn', migration, failures: 1 },
        { event: 'ledger.migrated', migration },
      ]);
      // Its limit was two seconds, not that of its connection, and the line above says so already.
      expect(lines.filter(({ event }) => event === 'postgres.statement-timed-out')).toEqual([]);
      expect(errors).toBe('');
    },
  );

  it('leaves the work to its next run, with status 75, while another process migrates (dispatch-once.js)', async () => {
    await other.query('SELECT pg_advisory_lock(727272)');
    expect(await start('dispatch-once.js')).toEqual([75, null]);
    expect(logged()).toMatchObject([{ event: 'dispatch.skipped', level: 'warn', because: 'another process migrates' }]);
    expect(errors).toBe('');
  });
});
