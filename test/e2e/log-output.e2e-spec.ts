import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from '../support/eventually.js';

const dist = fileURLToPath(new URL('../../dist/', import.meta.url));
const logger = new URL('../../dist/src/infra/logging/json-logger.js', import.meta.url).href;
/** Far more than may wait: 40 MB. */
const lines = 40_000;
/**
 * Logs that many lines of a kilobyte and reports it, then goes on with one line now and then until it is told to end.
 */
const program = `
  import { register } from 'prom-client';
  import { JsonLogger } from ${JSON.stringify(logger)};
  const logger = JsonLogger.open({ LOG_LEVEL: 'error' });
  const text = 'x'.repeat(1000);
  for (let nr = 1; nr <= ${lines}; nr++) {
    logger.error({ event: 'line', nr, text });
    if (nr % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  process.send('logged');
  setInterval(() => logger.error({ event: 'now and then' }), 20);
  process.on('message', async () => {
    process.send(await register.getSingleMetricAsString('heraut_log_lines_dropped_total'));
    logger.error({ event: 'end' });
    void logger.flush().then(() => process.exit(7));
  });`;

interface Line {
  event: string;
  lines?: number;
  nr?: number;
}

describe('the log, when the reader of its pipe stops', () => {
  let directory: string;
  let child: ChildProcess;
  let pipe: number;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'heraut-log-'));
    const path = join(directory, 'pipe');
    execFileSync('mkfifo', [path]);
    pipe = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const output = openSync(path, constants.O_WRONLY);
    child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', output, 'inherit', 'ipc'],
    });
    closeSync(output);
    const [message] = (await once(child, 'message')) as [string];
    expect(message).toBe('logged'); // the process was not held up
  });
  afterEach(async () => {
    if (child.exitCode === null) child.kill('SIGKILL');
    await rm(directory, { recursive: true });
  });

  it('drops lines beyond a bound, and says how many when it is read again', async () => {
    const read: Line[] = [];
    createInterface({ input: new Socket({ fd: pipe, readable: true, writable: false }) }).on('line', (line) => {
      read.push(JSON.parse(line) as Line);
    });
    // The line about the others, and one that was logged after it: nothing waits any more.
    await eventually(() => {
      const last = read.findLastIndex(({ event }) => event === 'log.lines-dropped');
      return last !== -1 && read.slice(last).some(({ event }) => event === 'now and then');
    }, 'the log to flow again');
    const counted = once(child, 'message');
    child.send('end');
    const [metric] = (await counted) as [string];
    const [status] = (await once(child, 'exit')) as [number];
    const numbers = read.filter(({ event }) => event === 'line').map(({ nr }) => nr);
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a! - b!)); // in order, none twice
    expect(numbers.slice(0, 10_000)).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1)); // 10 of the 16 MiB
    const dropped = read.reduce((sum, { lines: more = 0 }) => sum + more, 0);
    expect(dropped).toBeGreaterThanOrEqual(lines - numbers.length);
    expect(dropped).toBeGreaterThan(lines / 2);
    expect(metric).toMatch(new RegExp(`^heraut_log_lines_dropped_total ${dropped}$`, 'm'));
    expect(status).toBe(7);
  });

  it('does not keep the process from ending', async () => {
    child.send('end');
    const [status] = (await once(child, 'exit')) as [number];
    expect(status).toBe(7);
    closeSync(pipe);
  });
});

describe('the log, when its disk is full', () => {
  it('neither ends the process nor keeps it from ending, and is counted where more waits than may', async () => {
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', full, 'pipe', 'ipc'],
    });
    closeSync(full);
    let complaints = '';
    child.stderr!.on('data', (text: Buffer) => (complaints += text.toString()));
    const [first] = (await once(child, 'message')) as [string];
    child.send('end');
    const [metric] = (await once(child, 'message')) as [string];
    const [status] = (await once(child, 'close')) as [number];
    expect([first, status, complaints]).toEqual(['logged', 7, '']);
    expect(Number(/^heraut_log_lines_dropped_total (\d+)$/m.exec(metric)![1])).toBeGreaterThan(lines / 2);
  });
});

describe('the stack trace of an error', () => {
  it.each([
    ['main.js', []],
    ['dispatch-once.js', ['--once']],
  ])('names files and lines of src, not of the bundle (%s)', (name, words) => {
    // An error that nobody has expected: no system has so long a name.
    const { stderr } = spawnSync(process.execPath, [join(dist, name), ...words], {
      env: { DATA_DIR: join('/', 'x'.repeat(5000)) },
      encoding: 'utf8',
    });
    expect(stderr).toMatch(/ at (lockDirectory|isEmbeddedThere) \(.*\/src\/infra\/postgres\/[a-z-]+\.ts:\d+:\d+\)/);
  });
});
