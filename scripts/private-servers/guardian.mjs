// Ends the processes of a run when the run itself cannot: it was killed, crashed, or finished without stopping them.
// It reads one instruction a line on standard input; the end of the input means that the run is gone.
//   + <pid> <signal>   end this process with this signal
//   - <pid>            it has ended by itself
//   d <directory>      remove this directory
//   c <project>        take down this Docker Compose project
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

/** @type {Map<number, NodeJS.Signals>} */
const processes = new Map();
/** @type {Set<string>} */
const directories = new Set();
/** @type {Set<string>} */
const projects = new Set();

// A Ctrl-C at the terminal is for the run, whose end is awaited here.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, what = '', signal] = line.split(' ');
  if (verb === '+') processes.set(Number(what), /** @type {NodeJS.Signals} */ (signal));
  if (verb === '-') processes.delete(Number(what));
  if (verb === 'd') directories.add(line.slice(2));
  if (verb === 'c') projects.add(what);
}

for (const [pid, signal] of processes) send(pid, signal);
const giveUpAt = Date.now() + 5000;
while ([...processes.keys()].some((pid) => send(pid, 0)) && Date.now() < giveUpAt) await sleep(50);
for (const pid of processes.keys()) send(pid, 'SIGKILL');
for (const project of projects)
  spawnSync('docker', ['compose', '-p', project, 'down', '--volumes'], { stdio: 'ignore' });
for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 20 });

/**
 * @param {number} pid
 * @param {NodeJS.Signals | 0} signal
 * @returns {boolean} whether there is such a process
 */
function send(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
