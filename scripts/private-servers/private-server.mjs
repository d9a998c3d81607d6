import { createSocket } from 'node:dgram';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * @typedef {object} Launch
 * @property {string} name
 * @property {string} url for a client
 * @property {string} logFile
 * @property {(output: number) => import('node:child_process').ChildProcess} spawn starts it, writing to that descriptor
 * @property {(child: import('node:child_process').ChildProcess) => boolean | Promise<boolean>} isReady
 * @property {NodeJS.Signals} stopSignal ends it in order
 * @property {NodeJS.Signals} killSignal ends it as a power cut would, its children too
 * @property {() => void | Promise<void>} erase removes its data; it is not running then
 * @property {(line: string) => void} tellGuardian
 */

const readyWithinMs = 90_000;
const stopWithinMs = 20_000;

/** One server of our own on a loopback port; it can be stopped, killed, started again with its data, or wiped. */
export class PrivateServer {
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child;
  /** @type {Promise<void>} */
  #ended = Promise.resolve();

  /** @param {Launch} launch */
  constructor(launch) {
    this.launch = launch;
  }

  get url() {
    return this.launch.url;
  }

  /** @returns {number | undefined} of the server process itself; undefined while it does not run */
  get pid() {
    return this.#child?.pid;
  }

  async start() {
    if (this.#child) return;
    const { name, logFile, tellGuardian } = this.launch;
    const output = openSync(logFile, 'a');
    const child = this.launch.spawn(output);
    closeSync(output);
    /** @type {Error | undefined} */
    let failure;
    this.#child = child;
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => {
        failure = error;
        this.#child = undefined;
        resolve();
      });
      child.once('exit', () => {
        this.#child = undefined;
        tellGuardian(`- ${child.pid}`);
        resolve();
      });
    });
    // The run may end without stopping it; then the guardian does.
    child.unref();
    if (child.pid) tellGuardian(`+ ${child.pid} ${this.launch.killSignal}`);
    for (const giveUpAt = Date.now() + readyWithinMs; ; await sleep(20)) {
      if (this.#child !== child) {
        throw new Error(`${name} ended while it was starting.\n${this.#lastLogLines()}`, { cause: failure });
      }
      if (await this.launch.isReady(child)) return;
      if (Date.now() > giveUpAt) {
        await this.kill9();
        throw new Error(`${name} was not ready within ${readyWithinMs / 1000} s.\n${this.#lastLogLines()}`);
      }
    }
  }

  /** Orderly, as an operator would. */
  async stop() {
    const child = this.#child;
    if (!child) return;
    child.ref(); // or this process could end while it waits
    child.kill(this.launch.stopSignal);
    const forced = setTimeout(() => child.kill(this.launch.killSignal), stopWithinMs);
    await this.#ended;
    clearTimeout(forced);
  }

  /** As a power cut would: no goodbye to clients, nothing flushed. The data stay. */
  async kill9() {
    this.#child?.ref();
    this.#child?.kill(this.launch.killSignal);
    await this.#ended;
  }

  /** Stops it without ending it: it accepts connections, and answers nothing until `thaw`. */
  async freeze() {
    this.#child?.kill('SIGSTOP');
  }

  async thaw() {
    this.#child?.kill('SIGCONT');
  }

  async restart() {
    await this.stop();
    await this.start();
  }

  /** Kills it and starts it again without data. */
  async wipe() {
    await this.kill9();
    await this.launch.erase();
    await this.start();
  }

  #lastLogLines() {
    return readFileSync(this.launch.logFile, 'utf8').trimEnd().split('\n').slice(-25).join('\n');
  }
}

/** Longer than any server needs until it listens. */
const reservedMs = 120_000;

/**
 * A port on which no process listens. Chosen below the range in which systems choose ports for outgoing connections
 * (Linux: 32768 and up), so that a server that is down for a moment finds its port free again. Its UDP counterpart is
 * held for a while: a server takes seconds until it listens, and the same port could be given to another one meanwhile,
 * also by another process.
 */
export async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 16_000);
    const reservation = createSocket('udp4').unref();
    const isReserved = await new Promise((resolve) => {
      reservation.once('error', () => resolve(false));
      reservation.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
    });
    if (isReserved && (await isFree(port))) {
      setTimeout(() => reservation.close(), reservedMs).unref();
      return port;
    }
    reservation.close();
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
export function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
