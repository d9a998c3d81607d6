// Heraut as it runs in production: several processes of every role, which scenarios kill, freeze and start again.
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startHeraut } from '../heraut-process.mjs';
import { compiled } from '../ready-to-run.mjs';
import { wrongWithEnding } from './endings.mjs';
import { SupervisedProcesses } from './supervised.mjs';
import { freePort } from '../private-servers/private-server.mjs';

/** @typedef {'api' | 'worker' | 'dispatcher'} Role */

const hostOfItsOwn = fileURLToPath(new URL('host-of-its-own.mjs', import.meta.url));
const superuser = { clientId: 'faults', secret: 'for these faults only' };

export class Member {
  /** @type {import('../heraut-process.mjs').HerautProcess | undefined} */
  #process;
  /** The part that should end the present process; undefined: none should. @type {import('./endings.mjs').Ender | undefined} */
  #asked;
  /** Ends that were not as they should have been, in words. @type {string[]} */
  wrongEndings = [];

  /**
   * @param {Role[]} roles
   * @param {string} name
   * @param {number} port
   * @param {{ directory: string, settings: Record<string, string>, tellGuardian: (line: string) => void }} environment
   */
  constructor(roles, name, port, environment) {
    this.roles = roles;
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.environment = environment;
    /** @type {Record<string, string>} */
    this.settings = { ...environment.settings, ROLES: roles.join(','), PORT: String(port) };
    /** @type {string[]} */
    this.nodeOptions = [];
    const { PROCESSES } = environment.settings;
    /** Of a supervisor: what it supervises. */
    this.supervised =
      PROCESSES === undefined
        ? undefined
        : new SupervisedProcesses(join(environment.directory, `${name}.log`), Number(PROCESSES));
  }

  get pid() {
    return this.#process?.pid ?? 0;
  }

  get logFile() {
    return this.#process?.logFile;
  }

  /** Resolves when it is ready. Does nothing where it runs already. */
  async start() {
    if (this.#process && !this.#process.hasEnded) return;
    const { directory, tellGuardian } = this.environment;
    const { name, settings } = this;
    const nodeOptions = ['--import', hostOfItsOwn, ...this.nodeOptions];
    const process = startHeraut({ name, directory, settings, nodeOptions, tellGuardian, endedBy: 'SIGKILL' });
    this.#process = process;
    this.#asked = undefined;
    // At once, not when somebody looks: by then it may run again, or have been killed as it should.
    void process.ended().then((ending) => {
      const wrong = wrongWithEnding(this.#asked, ending);
      if (wrong !== undefined) this.wrongEndings.push(wrong);
    });
    await process.untilReady(this.url);
    // Connections that are opened before the last of them listens are all with the others.
    await this.supervised?.untilAllListen();
  }

  async kill9() {
    await this.#end('SIGKILL');
  }

  /** As a supervisor stops it. */
  async stop() {
    await this.#end('SIGTERM');
  }

  /** Stops it without ending it (SIGSTOP): its connections stay open, so no server notices. */
  freeze() {
    this.#process?.signal('SIGSTOP');
  }

  thaw() {
    this.#process?.signal('SIGCONT');
  }

  /** @param {import('./endings.mjs').Ender} signal */
  async #end(signal) {
    const process = this.#process;
    if (!process || process.hasEnded) return;
    this.#asked = signal;
    process.signal(signal);
    await process.ended();
  }
}

export class Cluster {
  /** @type {Member[]} */
  members = [];

  /** @param {string} token of the superuser */
  constructor(token) {
    this.token = token;
  }

  /**
   * @param {object} how
   * @param {Record<string, number>} how.counts how many processes of each role, or of several (`api,worker`)
   * @param {Record<string, string>} how.settings
   * @param {string} how.directory for logs
   * @param {(line: string) => void} how.tellGuardian
   */
  static async create({ counts, settings, directory, tellGuardian }) {
    const { makeToken } = await compiled('command-line/make-token.js');
    const cluster = new Cluster(makeToken(superuser.clientId, superuser.secret, Date.now()));
    const common = {
      NODE_ENV: 'production',
      SUPERUSER_CLIENT_ID: superuser.clientId,
      SUPERUSER_SECRET: superuser.secret,
      ...settings,
    };
    for (const [list, count] of Object.entries(counts)) {
      const roles = /** @type {Role[]} */ (list.split(','));
      for (let number = 1; number <= count; number++) {
        const environment = { directory, settings: common, tellGuardian };
        cluster.members.push(new Member(roles, `${roles.join('-')}-${number}`, await freePort(), environment));
      }
    }
    return cluster;
  }

  /** @param {Role} [role] all of them when not given */
  of(role) {
    return this.members.filter((member) => role === undefined || member.roles.includes(role));
  }

  async start() {
    const [first, ...others] = this.members;
    await first?.start(); // it migrates
    await Promise.all(others.map((member) => member.start()));
  }

  /** Everything runs again. */
  async heal() {
    for (const member of this.members) member.thaw();
    await Promise.all(this.members.map((member) => member.start()));
  }

  /** Of all processes so far, those that ended otherwise than they should have. @returns {Promise<string[]>} */
  async wrongEndings() {
    const wrong = this.members.map(async ({ name, wrongEndings, supervised }) =>
      [...wrongEndings, ...((await supervised?.wrongEndings()) ?? [])].map((each) => `${name} ${each}`),
    );
    return (await Promise.all(wrong)).flat();
  }

  /** Kills all of them: everything has been counted. */
  async end() {
    await Promise.all(this.members.map((member) => member.kill9()));
  }

  /**
   * One request to the first API.
   * @param {'GET' | 'POST' | 'PUT' | 'PATCH'} method
   * @param {string} path
   * @param {object} [body]
   */
  async call(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, ...(body && { 'content-type': 'application/json' }) };
    const url = `${this.of('api')[0]?.url}${path}`;
    const request = { method, headers, body: JSON.stringify(body) };
    const response = await fetch(url, request);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${text}`);
    return /** @type {unknown} */ (JSON.parse(text));
  }

  /**
   * How often each event was logged, the rules of the dispatcher that have found something, and the lines a process
   * printed that are no events: then it has crashed.
   * @returns {Promise<{ events: Map<string, number>, rules: Set<string>, output: string[] }>}
   */
  async readLogs() {
    /** @type {Map<string, number>} */
    const events = new Map();
    /** @type {Set<string>} */
    const rules = new Set();
    /** @type {string[]} */
    const output = [];
    for (const { logFile, name } of this.members) {
      if (logFile === undefined) continue;
      for await (const line of createInterface({ input: createReadStream(logFile) })) {
        // The last line of one that was killed may be half a line.
        const event = line.startsWith('{') ? /"event":"([^"]+)"/.exec(line)?.[1] : undefined;
        const rule = event === 'dispatcher.recovered' ? /"rule":"([^"]+)"/.exec(line)?.[1] : undefined;
        if (rule !== undefined) rules.add(rule);
        if (event !== undefined) events.set(event, (events.get(event) ?? 0) + 1);
        else if (line !== '' && !line.startsWith('{')) output.push(`${name}: ${line}`);
      }
    }
    return { events, rules, output };
  }
}
