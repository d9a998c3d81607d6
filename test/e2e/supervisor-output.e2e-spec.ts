import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../support/eventually.js';
import { isAlive } from '../support/spawn-heraut.js';

const from = (path: string) => JSON.stringify(new URL(`../../dist/src/${path}`, import.meta.url).href);
/**
 * A supervisor as main.ts starts it, of two processes that do nothing but log. They say on standard error that they
 * have started, and have no listener for a signal, as while they start. MEGABYTES is what each logs at its start. With
 * SCRAPE one asks for scrapes, until the other is in one of them; that one answers each only when it is asked for the
 * next, and the next a moment later. With NO_MEMORY_FOR the system refuses to start that many-th process.
 */
const program = `
  import cluster from 'node:cluster';
  import { createServer } from 'node:net';
  import { JsonLogger } from ${from('infra/logging/json-logger.js')};
  import { openStandardOutput } from ${from('infra/logging/standard-output.js')};
  import { Supervisor } from ${from('supervision/supervisor.cluster.js')};
  import { readSettings } from ${from('config/settings.js')};
  const { env } = process;
  const settings = readSettings({ DATABASE_URL: 'postgres://none', SUPERUSER_SECRET: 'none' });
  if (cluster.isPrimary) {
    const { fork } = cluster;
    let forks = 0;
    cluster.fork = (...given) => {
      if (++forks === Number(env.NO_MEMORY_FOR)) throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' });
      return fork.apply(cluster, given);
    };
    const output = openStandardOutput(1);
    const logger = JsonLogger.open(settings, output);
    const status = await new Supervisor(2, settings, env, logger, output).run();
    await logger.flush();
    process.exit(status);
  }
  const logger = JsonLogger.open(settings);
  for (let kilobytes = 0; kilobytes < Number(env.MEGABYTES) * 1000; kilobytes++) logger.log({ event: 'line', text: 'x'.repeat(1000) });
  setInterval(() => logger.log({ event: 'now and then' }), 20);
  createServer().listen(0, '127.0.0.1', () =>
    process.stderr.write('started ' + process.pid + '\\nfile ' + env.CONFIG_FILE + '\\n'));
  const gauge = { name: 'open', help: 'h', type: 'gauge', aggregator: 'sum', values: [{ value: 1, labels: {} }] };
  const answer = (scrape) => process.send({ kind: 'metrics', scrape, metrics: [gauge] });
  let late;
  process.on('message', ({ kind, scrape, text }) => {
    if (kind === 'are-you-there') process.send({ kind: 'here' });
    if (kind === 'all-metrics') {
      process.stderr.write('scraped ' + /^open (.*)$/m.exec(text)[1] + '\\n');
      // More than two, where a second does not suffice for the moment.
      if (scrapes === 1 || /^open 1$/m.test(text)) process.send({ kind: 'ask-all-metrics', request: ++scrapes });
    }
    if (kind !== 'ask-metrics') return;
    if (cluster.worker.id === 1) return answer(scrape);
    if (late === undefined) return void (late = scrape);
    answer(late);
    setTimeout(answer, 50, (late = scrape));
  });
  let scrapes = 1;
  if (env.SCRAPE && cluster.worker.id === 2) process.send({ kind: 'ask-all-metrics', request: 1 });`;

describe('a supervisor', () => {
  let directory: string;
  let child: ChildProcess;
  let said: string[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-supervisor-'));
    said = [];
  });
  afterEach(async () => {
    for (const pid of [child.pid!, ...started()]) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    await rm(directory, { recursive: true });
  });

  async function start(environment: Record<string, string>): Promise<void> {
    await spawnWith(environment);
    await eventually(() => started().length === 2, 'both processes to start');
  }

  async function spawnWith(environment: Record<string, string>): Promise<void> {
    const path = join(directory, 'program.mjs');
    await writeFile(path, program);
    child = spawn(process.execPath, [path], {
      env: { ...process.env, MEGABYTES: '0', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a process group of its own, as in a terminal
    });
    createInterface({ input: child.stderr! }).on('line', (line) => said.push(line));
  }

  const after = (word: string) => said.filter((line) => line.startsWith(word)).map((line) => line.slice(word.length));
  const started = () => after('started ').map(Number);

  it.each([
    ['is gone', '0', () => child.stdout!.destroy()],
    ['was there, stopped, and is gone', '1', () => child.stdout!.destroy()],
    ['has stopped', '1', () => {}],
  ])('starts a process again, and ends in order, although the reader of its log %s', async (_, MEGABYTES, leave) => {
    await start({ MEGABYTES });
    leave();
    process.kill(started()[0]!, 'SIGKILL');
    await eventually(() => started().length === 3, 'its successor');
    process.kill(child.pid!, 'SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('goes on where the system refuses to start a process, and tries again', async () => {
    await start({ NO_MEMORY_FOR: '2' });
    const events: Record<string, unknown>[] = [];
    createInterface({ input: child.stdout! }).on('line', (line) => {
      events.push(JSON.parse(line) as Record<string, unknown>);
    });
    process.kill(child.pid!, 'SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(events).toContainEqual(expect.objectContaining({ event: 'process.failed', process: 2, level: 'error' }));
    expect(events).toContainEqual(
      expect.objectContaining({ event: 'process.ended', process: 2, status: null, startsAgainInMs: 250 }),
    );
  });

  it('ends with status 1 where the system refuses to start the first process', async () => {
    await spawnWith({ NO_MEMORY_FOR: '1' });
    child.stdout!.resume();
    expect(await once(child, 'close')).toEqual([1, null]);
  });

  it('has the configuration file applied once, and not again by a process that is started again', async () => {
    await start({ CONFIG_FILE: '/etc/heraut.yaml' });
    child.stdout!.resume();
    process.kill(started()[0]!, 'SIGKILL');
    await eventually(() => after('file ').length === 3, 'its successor');
    expect(after('file ')).toEqual(['/etc/heraut.yaml', '', '']);
    process.kill(child.pid!, 'SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('gives a reader that goes on every line', async () => {
    await start({ MEGABYTES: '3' });
    const events: unknown[] = [];
    createInterface({ input: child.stdout! }).on('line', (line) => {
      events.push((JSON.parse(line) as { event: string }).event);
    });
    await eventually(() => events.filter((event) => event === 'line').length === 6000, 'all lines');
    process.kill(child.pid!, 'SIGTERM');
    await eventually(() => events.at(-1) === 'supervisor.stopped', 'the last line');
  });

  it('ends with status 0 when a terminal sends SIGINT to all, although a process has not begun to listen to it', async () => {
    await start({});
    child.stdout!.resume();
    process.kill(-child.pid!, 'SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('waits in a scrape for the answer to that one, not for a late one', async () => {
    await start({ SCRAPE: '1' });
    child.stdout!.resume();
    await eventually(() => after('scraped ').includes('2') || after('scraped ').length === 6, 'the scrapes');
    expect(after('scraped ').at(-1)).toBe('2');
    process.kill(child.pid!, 'SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});
