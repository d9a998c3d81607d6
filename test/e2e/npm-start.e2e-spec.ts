import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { urlOf } from '../../scripts/own-url.mjs';
import { accepts } from '../../scripts/private-servers/private-server.mjs';
import { readSettings } from '../../src/config/settings.js';
import { countProcesses, thisMachine } from '../../src/supervision/process-plan.js';
import { eventually } from '../support/eventually.js';
import { real } from '../support/stacks.js';

const project = fileURLToPath(new URL('../..', import.meta.url));
// The embedded database runs for seconds: to optimize its code costs more than it gains.
const script = [process.execPath, '--liftoff-only', join(project, 'scripts/start.mjs')];
const npm = ['npm', 'start'];

interface StartOptions {
  command?: string[];
  settings?: Record<string, string>;
}

/** `npm start` with a data directory and ports of its own; `text` is all it has printed. */
class Start {
  text = '';
  private readonly child: ChildProcess;

  constructor(dataDirectory: string, { command = script, settings = {} }: StartOptions) {
    const [program = '', ...words] = command;
    this.child = spawn(program, words, {
      cwd: project,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, DATA_DIR: dataDirectory, PORT: '0', ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a process group of its own, to see what is left of it
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

  /** @param signal sent to the process that was started, and to no other */
  async end(signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const exit = once(this.child, 'exit') as Promise<[number | null]>;
    this.child.kill(signal);
    return (await exit)[0];
  }

  /**
   * Whether a process is left of those that were started in the terminal: npm, its shell, and the script with the
   * receiver.
   */
  get isAnyLeft(): boolean {
    try {
      return process.kill(-this.child.pid!, 0);
    } catch {
      return false;
    }
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

  function start(options: StartOptions = {}, directory = dataDirectory): Start {
    const one = new Start(directory, options);
    started.push(one);
    return one;
  }

  it('prints commands that, pasted, make a first delivery arrive; started again it finds the data; ends with all its processes when npm gets SIGINT or SIGTERM', async () => {
    const first = start({ command: npm });
    const commands = await first.commands();
    await expectDocumentation(first);
    expect(commands.map((command) => /\/api\/v1\/(\w+)/.exec(command)?.[1])).toEqual([
      'kanaal',
      'abonnement',
      'notificaties',
    ]);
    const [link = ''] = /http:\S+\/console\/enter\?ticket=\S+/.exec(first.text) ?? [];
    expect([await enter(link), await enter(link)]).toEqual(['./', './sign-in?error=ticket-refused']);
    expect(first.text).toMatch(/HERAUT_URL=http:\S+ DATA_DIR=\S+ npx heraut console$/m);
    for (const command of commands) expect(await paste(command)).toBe(201);
    await eventually(() => /received +webhook-id: \S+ +webhook-attempt: 1\n +\{"kanaal":"demo"/.test(first.text), 'it');

    await first.end('SIGINT');
    await expectNothingLeft(first);

    const second = start({ command: npm });
    const secondUrl = await second.url();
    const [publish, ...others] = await second.commands();
    expect(others).toEqual([]);
    expect(second.text).toContain('Found from before');
    expect(await paste(publish ?? '')).toBe(201);
    await eventually(() => second.text.includes('received '), 'the second delivery');

    const token = /Bearer ([\w.-]+)/.exec(publish ?? '')?.[1] ?? '';
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as Record<
      string,
      number
    >;
    expect(exp! - iat!).toBe(15 * 60);
    const asSuperuser = { headers: { authorization: `Bearer ${token}` } };
    expect((await fetch(`${secondUrl}/admin/v1/applications`, asSuperuser)).status).toBe(403);
    await second.end('SIGTERM');
    await expectNothingLeft(second);
  });

  it('prints no token where a secret is configured, but the command that makes one', async () => {
    const settings = { SUPERUSER_CLIENT_ID: 'operator', SUPERUSER_SECRET: 'not-to-be-shown' };
    const one = start({ settings });
    const commands = await one.commands();
    expect(one.text).not.toContain(settings.SUPERUSER_SECRET);
    expect(one.text).not.toMatch(/\beyJ|ticket=/); // how every JSON Web Token begins, and what a link that signs in has
    expect(one.text).toMatch(/^The console: http:\S+\/console\/\n.*node '\/\S+' console$/m);
    const [makeToken = ''] = one.text.split('\n').filter((line) => line.startsWith('TOKEN='));
    for (const command of commands) expect(await paste(`${makeToken}\n${command}`, settings)).toBe(201);
    await eventually(() => one.text.includes('received '), 'the delivery');
    expect(await one.end('SIGINT')).toBe(0);
    await expectNothingLeft(one);
  });

  it('uses every core on real servers, and ends with all its processes', async () => {
    const { settings, release } = await real.prepare();
    const count = countProcesses(readSettings({ ...settings, PROCESSES: 'auto' }), settings, thisMachine());
    const one = start({ settings: { ...settings, SUPERUSER_SECRET: 'not-to-be-shown' } });
    await one.url();
    await eventually(() => one.text.match(/"event":"process.listening"/g)?.length === count, 'a process for each core');
    expect(one.text.includes(`"event":"supervisor.started","processes":${count}`)).toBe(count > 1);
    expect(await one.end('SIGTERM')).toBe(0);
    await expectNothingLeft(one);
    expect(one.text.match(/"event":"process.stopped"/g)).toHaveLength(count);
    await release();
  });

  it('names no page that its roles do not serve', async () => {
    const { settings, release } = await real.prepare();
    const one = start({ settings: { ...settings, PROCESSES: '1', ROLES: 'worker, dispatcher' } });
    const url = await one.url();
    expect(await one.end('SIGTERM')).toBe(0);
    await expectNothingLeft(one);
    expect(one.text).toContain(`\nHeraut listens on ${url}\n`);
    expect(one.text).not.toMatch(/console|documentation/i);
    await release();
  });

  async function expectDocumentation(one: Start): Promise<void> {
    const url = await one.url();
    for (const path of ['/docs', '/api/v1/schema/']) {
      expect(one.text).toContain(path);
      expect((await fetch(`${url}${path}`)).status).toBe(200);
    }
  }

  async function expectNothingLeft(one: Start): Promise<void> {
    const port = Number(new URL(await one.url()).port);
    await eventually(async () => !one.isAnyLeft && !(await accepts(port)), 'the end of all of it');
  }
});

/** Opens a link as a browser does. @returns where it leads, from there */
async function enter(link: string): Promise<string | null> {
  return (await fetch(link, { redirect: 'manual' })).headers.get('location');
}

/** Sends the request that curl would send for this line of a shell. @returns the status of the answer */
async function paste(line: string, environment: Record<string, string> = {}): Promise<number> {
  const words = execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${line}`], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...environment },
  });
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

it.each([
  [undefined, 'http://127.0.0.1:8000'],
  ['0.0.0.0', 'http://127.0.0.1:8000'],
  ['::', 'http://127.0.0.1:8000'],
  ['127.0.0.2', 'http://127.0.0.2:8000'],
  ['heraut.example', 'http://heraut.example:8000'],
  ['::1', 'http://[::1]:8000'],
])('`npm start` with HOST=%s asks Heraut at %s', (host, url) => {
  expect(urlOf(host, 8000)).toBe(url);
  expect(new URL(url).port).toBe('8000');
});
