// A verifier in another language: a program that reads one call a line, and says `accepted` or `refused` to each.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A header that is missing. */
const missing = '-';

/** @param {string} program */
export const isInstalled = (program, words = ['--version']) =>
  spawnSync(program, words, { stdio: 'ignore' }).status === 0;

export class VerifyingProgram {
  /** In the order of the questions. @type {((answer: string) => void)[]} */
  #waiting = [];
  #trouble = '';

  /**
   * @param {string} program
   * @param {string[]} words
   * @param {import('node:child_process').SpawnOptionsWithoutStdio} options
   */
  constructor(program, words, options = {}) {
    this.child = spawn(program, words, options);
    this.child.stderr.on('data', (/** @type {Buffer} */ text) => (this.#trouble += text.toString()));
    createInterface({ input: this.child.stdout }).on('line', (line) => this.#waiting.shift()?.(line));
    this.child.once('error', (error) => (this.#trouble += error.message));
    this.child.once('close', () => {
      for (const answer of this.#waiting.splice(0)) answer(`it ended: ${this.#trouble}`);
    });
    this.child.stdin.on('error', () => {}); // it ended, which is told
  }

  /**
   * @param {string} key
   * @param {import('./call.mjs').Call} call
   * @returns {Promise<boolean>} whether the call is genuine
   * @throws {Error} when the program has ended
   */
  async isGenuine(key, { id, timestamp, signature, body }) {
    const fields = [key, id ?? missing, timestamp ?? missing, signature ?? missing, body.toString('base64')];
    /** @type {string} */
    const answer = await new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.child.exitCode !== null) resolve(`it ended: ${this.#trouble}`);
      else this.child.stdin.write(`${fields.join('\t')}\n`);
    });
    if (answer === 'accepted' || answer === 'refused') return answer === 'accepted';
    throw new Error(`${this.child.spawnfile} says: ${answer}`);
  }

  async stop() {
    if (this.child.exitCode !== null) return;
    const ended = once(this.child, 'close');
    this.child.stdin.end();
    await ended;
  }
}
