import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Dispatcher } from 'undici';
import { freePort } from '../../scripts/private-servers/private-server.mjs';
import { eventually } from './eventually.js';
import { secretWatch } from './secret-watch.js';
import { signToken } from './tokens.js';

const program = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export const superuser = { clientId: 'test-superuser', secret: 'a secret for tests only' };

export type LogEvent = Record<string, unknown> & { event?: string };

export interface CallOptions {
  body?: unknown;
  /** The superuser's when not given; `null` for none. */
  token?: string | null;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** A connection; otherwise any. */
  dispatcher?: Dispatcher;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed when it is JSON, otherwise the text; undefined when empty. */
  body: unknown;
  /** The exact bytes as text. */
  text: string;
}

export interface SpawnOptions {
  /** Environment of the process; a stack's settings and those of the test. */
  settings: Record<string, string>;
  /** Wait for `/health/live`, or for `/health/ready` (default). */
  until?: 'live' | 'ready';
}

/** Processes that a test left running end with the test process. */
const running = new Set<ChildProcess>();
process.on('exit', () => running.forEach((child) => child.kill('SIGKILL')));

/** The built program in a process of its own, as an operator runs it. */
export class HerautProcess {
  /** Everything it logged, over restarts. */
  readonly logs: LogEvent[] = [];
  /** Lines that are not JSON: a crash tells its reason there. */
  readonly output: string[] = [];
  private child: ChildProcess | undefined;

  private constructor(
    readonly url: string,
    private readonly settings: Record<string, string>,
  ) {}

  static async start({ settings, until = 'ready' }: SpawnOptions): Promise<HerautProcess> {
    if (!existsSync(program))
      throw new Error('dist/main.js is not there: run `npm test`, or `npm run build` before Vitest.');
    if (settings.PORT !== undefined) return this.startAt(settings.PORT, settings, until);
    for (let times = 1; ; times++) {
      try {
        return await this.startAt(String(await freePort()), settings, until);
      } catch (error) {
        // Until it listens, which takes the embedded database seconds, another test may have taken the port.
        if (times === 3 || !(error instanceof Error && error.message.includes('EADDRINUSE'))) throw error;
      }
    }
  }

  private static async startAt(
    port: string,
    settings: Record<string, string>,
    until: 'live' | 'ready',
  ): Promise<HerautProcess> {
    const heraut = new HerautProcess(`http://127.0.0.1:${port}`, {
      SUPERUSER_CLIENT_ID: superuser.clientId,
      SUPERUSER_SECRET: superuser.secret,
      REFUSALS_PER_MINUTE: '1000000',
      ...settings,
      HOST: '127.0.0.1',
      PORT: port,
    });
    await heraut.start(until);
    return heraut;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Again with the same settings, after `stop` or `kill9`. */
  async start(until: 'live' | 'ready' = 'ready'): Promise<void> {
    // The embedded database runs for seconds: to optimize its code costs more than it gains.
    const options = this.settings.DATABASE_URL ? [] : ['--liftoff-only'];
    secretWatch.knowSettings(this.settings);
    const child = spawn(process.execPath, [...options, program], {
      env: { PATH: process.env.PATH, TZ: 'UTC', ...this.settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    running.add(child);
    child.once('exit', () => {
      running.delete(child);
      if (this.child === child) this.child = undefined;
    });
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => this.read(line));
    await eventually(
      async () => {
        if (this.child !== child) return 'ended';
        return (await fetch(`${this.url}/health/${until}`)).ok;
      },
      `Heraut to be ${until}`,
      { everyMs: 25 },
    );
    if (this.child !== child) throw new Error(`Heraut ended while it was starting.\n${this.lastLines()}`);
  }

  /** SIGTERM, as a supervisor does it. @returns the exit status, null when a signal ended it */
  async stop(): Promise<number | null> {
    return this.end('SIGTERM');
  }

  async kill9(): Promise<void> {
    await this.end('SIGKILL');
  }

  /** The exit status with which it ends, whatever ends it; null when a signal does. */
  async ended(): Promise<number | null> {
    const [status] = (await once(this.child!, 'exit')) as [number | null];
    return status;
  }

  /** One HTTP call to it, by default as the superuser. */
  async call(method: string, path: string, { body, token, headers = {}, ...also }: CallOptions = {}): Promise<Answer> {
    const authorization = token === null ? undefined : `Bearer ${token ?? signToken(superuser)}`;
    secretWatch.knowOf(body, authorization);
    const response = await fetch(`${this.url}${path}`, {
      method,
      redirect: 'manual',
      ...(also as RequestInit), // Node's own undici has types of another version
      headers: {
        ...(authorization === undefined ? {} : { authorization }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    secretWatch.answer(`${method} ${path}`, response.headers, text);
    const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
    const { status, headers: answered } = response;
    return { status, headers: answered, body: isJson ? JSON.parse(text) : text || undefined, text };
  }

  private async end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.child;
    if (!child) return null;
    const ended = once(child, 'exit') as Promise<[number | null]>;
    child.kill(signal);
    const [status] = await ended;
    return status;
  }

  private read(line: string): void {
    secretWatch.line(line);
    if (!line.startsWith('{')) return void this.output.push(line);
    try {
      this.logs.push(JSON.parse(line) as LogEvent);
    } catch {
      this.output.push(line);
    }
  }

  private lastLines(): string {
    return [...this.output.slice(-20), ...this.logs.slice(-10).map((event) => JSON.stringify(event))].join('\n');
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
