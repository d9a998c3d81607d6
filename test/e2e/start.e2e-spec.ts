import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { TestLedger } from '../support/ledger.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { embedded, real } from '../support/stacks.js';

const programOf = (name: string) => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));
const environment = (settings: Record<string, string>) => ({ PATH: process.env.PATH, PORT: '0', ...settings });

describe('a program that cannot start', () => {
  const wordsOf = (name: string) => (name === 'dispatch-once.js' ? ['--once'] : []);
  const run = (name: string, settings: Record<string, string>, words = wordsOf(name)) =>
    spawnSync(process.execPath, [programOf(name), ...words], { env: environment(settings), encoding: 'utf8' });

  it.each(['rotate-keys', 'move-to-postgres'])('says how it is used when it is given words (%s)', (name) => {
    const { status, stderr } = run(`${name}.js`, {}, ['--dry-run']);
    expect(stderr).toMatch(new RegExp(`^Usage: npm run ${name}\n.* no words\\.\n$`));
    expect(status).toBe(1);
  });

  it.each([['--help'], ['--versoin'], ['--version', 'more']])(
    'says how it is used, and starts nothing, when it is given words that it does not know (main.js %s)',
    (...words) => {
      const { status, stdout, stderr } = run('main.js', { DATA_DIR: '/nowhere' }, words);
      expect(stderr).toMatch(/^Usage: node dist\/main\.js \[--version\]\n.*\n$/);
      expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    },
  );

  it('says its version, whatever its settings are (main.js)', () => {
    const { status, stdout } = run('main.js', { RETENTION_DAYS: 'wrong', PROCESSES: '2' }, ['--version']);
    const { version } = JSON.parse(readFileSync(programOf('../package.json'), 'utf8')) as { version: string };
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${version}\n` });
  });

  it.each(['main.js', 'dispatch-once.js', 'rotate-keys.js'])(
    'says in one line that Postgres is not there, and what to do (%s)',
    (name) => {
      const { status, stderr } = run(name, { DATABASE_URL: 'postgres://heraut@127.0.0.1:1/heraut' });
      expect(stderr).toBe(
        'Postgres cannot be used: ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:1. Is Postgres running, and is this its host and port? Check DATABASE_URL.\n',
      );
      expect(status).toBe(1);
    },
  );

  it('says of a database that is missing how to make it, also as one of several processes', async () => {
    const prepared = await real.prepare();
    const missing = new URL(prepared.settings.DATABASE_URL!);
    missing.pathname = '/missing';
    for (const PROCESSES of ['1', '2']) {
      const { status, stderr } = run('main.js', { DATABASE_URL: missing.href, PROCESSES });
      expect(stderr).toBe(
        'Postgres cannot be used: 3D000: database "missing" does not exist. The database is not there: CREATE DATABASE … OWNER …, or correct DATABASE_URL.\n',
      );
      expect(status).toBe(1);
    }
    await prepared.release();
  });

  it.each([
    ['made already', true],
    ['still to be made', false],
  ])('says of a database that can only be read what to do, where its tables are %s', async (_, hasTables) => {
    const prepared = await real.prepare(hasTables);
    const url = prepared.settings.DATABASE_URL!;
    await queryOnce(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`);
    const { status, stderr } = run('main.js', { DATABASE_URL: url, PROCESSES: '1' });
    expect(stderr).toMatch(
      /^Postgres cannot be used: 25006: cannot execute .* It can only be read: .* the primary.*\n$/,
    );
    expect(status).toBe(1);
    await prepared.release();
  });

  it.each(['main.js', 'dispatch-once.js'])('says in one line that DATA_DIR is of no use (%s)', async (name) => {
    const directory = await mkdtemp(join(tmpdir(), 'heraut-start-'));
    const DATA_DIR = join(directory, 'file', 'data');
    await writeFile(join(directory, 'file'), '');
    const { status, stderr } = run(name, { DATA_DIR });
    const [before, after] = stderr.split(/(?<=ENOTDIR: not a directory), .*?'\. /);
    expect(before).toBe(`The embedded database in DATA_DIR (${DATA_DIR}) cannot be used: ENOTDIR: not a directory`);
    expect(after).toBe('A file is in its place, or on the way there: set DATA_DIR to a directory.\n');
    expect(status).toBe(1);
    await rm(directory, { recursive: true });
  });

  it('names the settings of Open Notificaties that it does not read, once, also where there are several processes', () => {
    const DATABASE_URL = 'postgres://heraut@127.0.0.1:1/heraut';
    for (const PROCESSES of ['1', '2']) {
      const { stdout } = run('main.js', { DATABASE_URL, PROCESSES, SECRET_KEY: 'of-open-notificaties', DB_HOST: 'db' });
      const lines = stdout.split('\n').filter((line) => line.includes('settings.not-read'));
      const names = ['DB_HOST (here DATABASE_URL)', 'SECRET_KEY (here SECRET_KEYS)'];
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 'warn', names }]);
      expect(stdout).not.toContain('of-open-notificaties');
    }
  });

  it('does not start on the embedded database where Open Notificaties had another one', () => {
    const { status, stderr } = run('main.js', { DB_HOST: 'db', DB_NAME: 'opennotificaties', SECRET_KEY: 'x' });
    expect(stderr).toMatch(
      /^Heraut cannot start.*\n {2}DATABASE_URL: is needed where DB_HOST and DB_NAME are set.*\n$/,
    );
    expect(status).toBe(1);
  });

  it('says that RabbitMQ is not there where it needs it', async () => {
    const prepared = await real.prepare();
    const { status, stderr } = run('dispatch-once.js', { ...prepared.settings, AMQP_URL: 'amqp://127.0.0.1:1' });
    expect(stderr).toMatch(/^RabbitMQ cannot be used: ECONNREFUSED: .*:1\. Is RabbitMQ running.* AMQP_URL.*\n$/);
    expect(status).toBe(1);
    await prepared.release();
  });
});

describe('a start that fails when its parts work already', () => {
  const run = async (settings: Record<string, string>) => {
    const child = spawn(process.execPath, ['--liftoff-only', programOf('main.js')], {
      env: environment(settings),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, said };
  };

  it.each([[{ ROLES: 'worker,dispatcher' }], [{ PROCESSES: '2' }]])(
    'ends its work in order, so that nobody takes it for a worker that is alive: its port is in use (%j)',
    async (settings) => {
      const prepared = await real.prepare();
      const busy = createServer().listen(0, '127.0.0.1');
      await once(busy, 'listening');
      const PORT = String((busy.address() as AddressInfo).port);
      const { status, said } = await run({
        PROCESSES: '1',
        ...prepared.settings,
        ...settings,
        HOST: '127.0.0.1',
        PORT,
      });
      expect([status, said]).toEqual([
        1,
        expect.stringMatching(/^(listen|bind) EADDRINUSE[^\n]* set PORT to [^\n]*\n$/),
      ]);
      const processes = `SELECT expires_at = '-infinity' AS has_ended FROM process`;
      expect(await queryOnce(prepared.settings.DATABASE_URL!, processes)).toEqual([{ has_ended: true }]);
      busy.close();
      await prepared.release();
    },
  );

  it('leaves no lock in DATA_DIR, which a container that starts anew could not know to be stale', async () => {
    const prepared = await embedded.prepare();
    const CONFIG_FILE = join(prepared.settings.DATA_DIR!, 'heraut.yaml');
    await writeFile(CONFIG_FILE, 'channells: []');
    const { status, said } = await run({ ...prepared.settings, CONFIG_FILE });
    expect([status, said]).toEqual([1, expect.stringContaining('the configuration file is wrong')]);
    expect(existsSync(join(prepared.settings.DATA_DIR!, 'heraut.lock'))).toBe(false);
    await prepared.release();
  });
});

it('listens on one address where HOST is localhost, on both ports: every connection is under the same rules', async () => {
  const prepared = await real.prepare();
  const heraut = await HerautProcess.start({ settings: { ...prepared.settings, HOST: 'localhost', ADMIN_PORT: '0' } });
  const listening = await eventually(() => {
    const lines = heraut.logs.filter(({ event }) => event?.endsWith('.listening'));
    return lines.length === 2 && lines;
  }, 'both ports to be listened on');
  expect(listening.map(({ url }) => new URL(String(url)).hostname)).toEqual(['127.0.0.1', '127.0.0.1']);
  for (const { url } of listening) {
    const { port } = new URL(String(url));
    await expect(fetch(`http://[::1]:${port}/health/live`)).rejects.toThrow('fetch failed');
  }
  await heraut.stop();
  await prepared.release();
});

describe('a program of an older version than its database', () => {
  it('says once what the newer one has migrated, also where it is several processes, and goes on', async () => {
    const prepared = await real.prepare();
    const ledger = await TestLedger.open(prepared.settings); // migrates
    await ledger.close();
    const url = prepared.settings.DATABASE_URL;
    await queryOnce(
      url,
      `INSERT INTO migrations (timestamp, name) VALUES (99990101000000, 'One99990101000000'), (99990102000000, 'Two99990102000000')`,
    );
    const heraut = await HerautProcess.start({ settings: { ...prepared.settings, PROCESSES: '2' } });
    const logged = (event: string) => heraut.logs.filter((line) => line.event === event);
    await eventually(() => logged('process.listening').length === 2, 'both processes to listen');
    expect(logged('ledger.migrated-by-newer')).toEqual([
      expect.objectContaining({
        level: 'warn',
        migrations: ['One99990101000000', 'Two99990102000000'],
        remedy: expect.stringContaining('Finish the upgrade of every process.'),
      }),
    ]);
    await heraut.stop();
    await prepared.release();
  });

  it('says nothing where its own version has migrated it', async () => {
    const prepared = await real.prepare();
    const heraut = await HerautProcess.start({ settings: prepared.settings });
    expect(heraut.logs.filter(({ event }) => event === 'ledger.migrated-by-newer')).toEqual([]);
    await heraut.stop();
    await prepared.release();
  });
});

// As the first process of a container it would not get a signal that nobody listens to, and elsewhere it would be ended
// by it.
describe('a program that is told to stop while it starts', () => {
  let directory: string;
  let child: ChildProcess;
  let output: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-start-'));
    output = '';
  });
  afterEach(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    await rm(directory, { recursive: true });
  });

  function start(settings: Record<string, string>): Promise<unknown[]> {
    // The embedded database runs for seconds: to optimize its code costs more than it gains.
    child = spawn(process.execPath, ['--liftoff-only', programOf('main.js')], {
      env: environment(settings),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (text: Buffer) => (output += text.toString()));
    return once(child, 'close');
  }

  it.each(['SIGTERM', 'SIGINT'] as const)('ends with status 0 where it waits for a migration (%s)', async (signal) => {
    const prepared = await real.prepare();
    const url = prepared.settings.DATABASE_URL!;
    const other = new pg.Client(url);
    await other.connect();
    await other.query('SELECT pg_advisory_lock(727272)');
    const ended = start(prepared.settings);
    const waits = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 727272 AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    await eventually(async () => (await queryOnce(url, waits)).length > 0, 'it to wait for its turn');
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
    expect(output).toMatch(new RegExp(`"process.stopping".*"${signal}"[^]*"process.stopped"`));
    await other.end();
    await prepared.release();
  });

  it('ends with status 0 where a server says nothing to it', async () => {
    const prepared = await real.prepare();
    let connections = 0;
    const silent = createServer(() => connections++).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const AMQP_URL = `amqp://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const ended = start({ ...prepared.settings, AMQP_URL });
    await eventually(() => connections > 0, 'it to wait for RabbitMQ');
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(output).toMatch(/"process.stopping".*"SIGTERM"[^]*"process.stopped"/);
    expect(output).not.toMatch(/^\S*Error|"process.stop-failed"|"process.listening"/m);
    silent.close();
    await prepared.release();
  });

  it('ends with status 0 where its parts begin to work', async () => {
    const prepared = await real.prepare();
    const ledger = await TestLedger.open(prepared.settings); // migrates
    const url = prepared.settings.DATABASE_URL!;
    const other = new pg.Client(url);
    await other.connect();
    await other.query('BEGIN; LOCK TABLE subscription IN ACCESS EXCLUSIVE MODE');
    const ended = start(prepared.settings);
    const waits = `SELECT 1 FROM pg_locks WHERE relation = 'subscription'::regclass AND NOT granted`;
    await eventually(async () => (await queryOnce(url, waits)).length > 0, 'it to wait for its subscriptions');
    child.kill('SIGTERM');
    await eventually(() => output.includes('"process.stopping"'), 'it to have heard');
    await other.query('ROLLBACK');
    expect(await ended).toEqual([0, null]);
    expect(output).not.toMatch(/^\S*Error|"process.stop-failed"|"process.listening"/m);
    await other.end();
    await ledger.close();
    await prepared.release();
  });

  it('finishes the embedded database first, which is whole at the next start', async () => {
    const settings = { DATA_DIR: join(directory, 'data') };
    const stopped = start(settings);
    await eventually(() => existsSync(join(settings.DATA_DIR, 'pglite')), 'the database to be begun');
    child.kill('SIGTERM');
    expect(await stopped).toEqual([0, null]);
    expect(output).toMatch(/"process.stopping".*"SIGTERM"[^]*"process.stopped"/);
    expect(output).not.toMatch(/"process.stop-failed"|"process.listening"/);
    output = '';
    const again = start(settings);
    await eventually(() => output.includes('"process.listening"'), 'it to listen');
    child.kill('SIGTERM');
    expect(await again).toEqual([0, null]);
  });
});
