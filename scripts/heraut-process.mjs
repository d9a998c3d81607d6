import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { herautNodeOptions } from './node-options.mjs';
import { projectDirectory } from './ready-to-run.mjs';

const readyWithinMs = 60_000;

/** How a process ended: with a status of its own, or by a signal. @typedef {{ status: number | null, signal: NodeJS.Signals | null }} Ending */

/**
 * @typedef {object} HerautProcess
 * @property {number} pid
 * @property {boolean} hasEnded
 * @property {(origin: string) => Promise<void>} untilReady
 * @property {string} logFile
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => Promise<Ending>} ended resolves when it has
 * @property {() => Promise<void>} stop in good order
 */

/**
 * The built program in a process of its own, as an operator runs it. Its log goes to `<directory>/<name>.log`, appended
 * to a log that is there already.
 * @param {object} what
 * @param {string} what.name
 * @param {string} what.directory
 * @param {Record<string, string>} what.settings
 * @param {string[]} [what.nodeOptions]
 * @param {(line: string) => void} what.tellGuardian which ends it where the script cannot, and learns when it has ended
 * @param {NodeJS.Signals} [what.endedBy] the guardian
 * @returns {HerautProcess}
 */
export function startHeraut({ name, directory, settings, nodeOptions = [], tellGuardian, endedBy = 'SIGTERM' }) {
  const logFile = join(directory, `${name}.log`);
  const output = openSync(logFile, 'a');
  const child = spawn(
    process.execPath,
    [...herautNodeOptions, ...nodeOptions, join(projectDirectory, 'dist/main.js')],
    {
      env: { PATH: process.env.PATH, ...settings },
      stdio: ['ignore', output, output],
      detached: true, // a Ctrl-C at the terminal is for the script that started it
    },
  );
  closeSync(output);
  tellGuardian(`+ ${child.pid} ${endedBy}`);
  // At once: the system may soon give its number to another process.
  child.once('exit', () => tellGuardian(`- ${child.pid}`));
  const exit = once(child, 'exit');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const ended = async () => {
    if (!hasEnded()) await exit;
    return { status: child.exitCode, signal: child.signalCode };
  };
  return {
    pid: child.pid ?? 0,
    get hasEnded() {
      return hasEnded();
    },
    logFile,
    untilReady: async (origin) => {
      const giveUpAt = Date.now() + readyWithinMs;
      while (!(await isReady(origin))) {
        if (hasEnded() || Date.now() > giveUpAt) {
          throw new Error(
            `The ${name} process did not become ready.\n${readFileSync(logFile, 'utf8').split('\n').slice(-25).join('\n')}`,
          );
        }
        await sleep(50);
      }
    },
    signal: (signal) => void child.kill(signal),
    ended,
    stop: async () => {
      if (hasEnded()) return;
      child.kill('SIGTERM');
      await ended();
    },
  };
}

/** @param {string} origin */
export async function isReady(origin) {
  try {
    return (await fetch(`${origin}/health/ready`)).ok;
  } catch {
    return false; // not listening yet
  }
}
