import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { accepts } from '../../scripts/private-servers/private-server.mjs';
import { eventually } from '../support/eventually.js';

const program = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

/** `npm start` with a data directory and ports of its own; `text` is all it has printed. */
class Start {
  text = '';
  private readonly child: ChildProcess;

  constructor(dataDirectory: string) {
    this.child = spawn(process.execPath, [program], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDirectory, PORT: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.text += chunk.toString('utf8')));
    }
  }

  /** The lines to paste, once the last of them is there. */
  async commands(): Promise<string[]> {
    await eventually(() => /^curl .*\/notificaties .*$/m.test(this.text) && this.text.endsWith('\n'), 'the commands');
    return this.text.split('\n').filter((line) => line.startsWith('curl '));
  }

  async url(): Promise<string> {
    return (await eventually(() => /listens on (http:\S+)/.exec(this.text), 'the address'))[1] ?? '';
  }

  async end(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const exit = once(this.child, 'exit') as Promise<[number | null]>;
    this.child.kill('SIGINT');
    return (await exit)[0];
  }
}

describe('npm start', () => {
  let dataDirectory: string;
  const started: Start[] = [];

  beforeEach(() => {
    dataDirectory = mkdtempSync(join(tmpdir(), 'heraut-start-'));
  });

  afterEach(async () => {
    await Promise.all(started.splice(0).map((one) => one.end()));
    rmSync(dataDirectory, { recursive: true, force: true });
  });

  function start(): Start {
    const one = new Start(dataDirectory);
    started.push(one);
    return one;
  }

  it('prints commands that, pasted, make a first delivery arrive; started again it finds the data and asks only to publish', async () => {
    const first = start();
    const commands = await first.commands();
    expect(commands.map((command) => /\/api\/v1\/(\w+)/.exec(command)?.[1])).toEqual([
      'kanaal',
      'abonnement',
      'notificaties',
    ]);
    for (const command of commands) expect(await paste(command)).toBe(201);
    await eventually(() => /received +webhook-id: \S+ +webhook-attempt: 1\n +\{"kanaal":"demo"/.test(first.text), 'it');

    const url = await first.url();
    expect(await first.end()).toBe(0);
    expect(await accepts(Number(new URL(url).port))).toBe(false);

    const second = start();
    const [publish, ...others] = await second.commands();
    expect(others).toEqual([]);
    expect(second.text).toContain('Found from before');
    expect(await paste(publish ?? '')).toBe(201);
    await eventually(() => second.text.includes('received '), 'the second delivery');
  });

  it('names documentation that is there', async () => {
    const one = start();
    const url = await one.url();
    for (const path of ['/docs', '/api/v1/schema/openapi.yaml']) {
      expect(one.text).toContain(path);
      expect((await fetch(`${url}${path}`)).status).toBe(200);
    }
  });
});

/** What curl would do with this line, after a shell has read it. @returns the status of the answer */
async function paste(line: string): Promise<number> {
  const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${line}`], { encoding: 'utf8' });
  const headers = new Headers();
  const request: { method?: string; body?: string } = {};
  let url = '';
  const left = words.split('\0').slice(0, -1);
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word === '-X') request.method = left.shift();
    else if (word === '-d') request.body = left.shift();
    else if (word === '-H') headers.append(...((left.shift() ?? '').split(': ') as [string, string]));
    else if (word !== '-sS') url = word;
  }
  return (await fetch(url, { ...request, headers })).status;
}
