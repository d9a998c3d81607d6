// The processes of one supervisor (PROCESSES), which are not the suite's own children: its log tells of them.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { wrongWithEnding } from './endings.mjs';

/** @typedef {{ pid: number } & import('./endings.mjs').Ending} EndedProcess */

const listeningWithinMs = 60_000;

export class SupervisedProcesses {
  /** Pids of those that a scenario has killed. @type {Set<number>} */
  #killed = new Set();

  /**
   * @param {string} logFile of the supervisor
   * @param {number} count of the processes that it should have
   */
  constructor(logFile, count) {
    this.logFile = logFile;
    this.count = count;
  }

  /**
   * Until all of them listen.
   * @param {number[]} [but] pids of those that must be gone
   * @returns {Promise<number[]>} their pids, the oldest first
   */
  async untilAllListen(but = []) {
    for (const giveUpAt = Date.now() + listeningWithinMs; Date.now() < giveUpAt; await sleep(50)) {
      const { listening } = await this.#read();
      if (listening.length === this.count && !listening.some((pid) => but.includes(pid))) return listening;
    }
    throw new Error(
      `waited ${listeningWithinMs / 1000} s in vain for ${this.count} processes to listen: ${this.logFile}`,
    );
  }

  /** Stops one without ending it. @param {number} pid */
  freeze(pid) {
    process.kill(pid, 'SIGSTOP');
  }

  /** @param {number} pid */
  kill9(pid) {
    this.#killed.add(pid);
    process.kill(pid, 'SIGKILL');
  }

  /** @returns {Promise<string[]>} of those that no scenario has killed */
  async wrongEndings() {
    const { ended } = await this.#read();
    return wrongWithEnded(ended, this.#killed);
  }

  async #read() {
    /** @type {string[]} */
    const lines = [];
    for await (const line of createInterface({ input: createReadStream(this.logFile) })) lines.push(line);
    return readProcesses(lines);
  }
}

/**
 * @param {string[]} lines of a supervisor's log; the last may be half a line
 * @returns {{ listening: number[], ended: EndedProcess[] }} pids of those that have said that they listen and have not
 *   ended, the oldest first
 */
export function readProcesses(lines) {
  const told = lines
    .filter((line) => /^\{.*"event":"process\.(listening|ended)".*\}$/.test(line))
    .map((line) => JSON.parse(line));
  const ended = told
    .filter(({ event }) => event === 'process.ended')
    .map(({ pid, status, signal }) => ({ pid, status, signal }));
  const gone = new Set(ended.map(({ pid }) => pid));
  const listening = told.filter(({ event, pid }) => event === 'process.listening' && !gone.has(pid));
  return { listening: listening.map(({ pid }) => pid), ended };
}

/**
 * @param {EndedProcess[]} ended
 * @param {Set<number>} killed pids of those that a scenario has killed
 * @returns {string[]} faults of the ends
 */
export const wrongWithEnded = (ended, killed) =>
  ended.flatMap(({ pid, ...ending }) => {
    const wrong = wrongWithEnding(killed.has(pid) ? 'SIGKILL' : undefined, ending);
    return wrong === undefined ? [] : [`process ${pid} ${wrong}`];
  });
