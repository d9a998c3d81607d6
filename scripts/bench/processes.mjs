// CPU time and memory that processes have used so far, from Linux's /proc (proc(5)).
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** @throws {Error} where there is nothing to read */
export function requireProc() {
  if (process.platform !== 'linux') throw new Error('The benchmark reads CPU times from /proc, so it needs Linux.');
}

const ticksPerSecond = () => Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
/** @type {number | undefined} */
let microsPerTick;

/**
 * CPU microseconds of a process, of all its descendants, and of those of them that have ended.
 * @param {number} root
 */
export function cpuMicrosOfTree(root) {
  microsPerTick ??= 1e6 / ticksPerSecond();
  /** @type {Map<number, { parent: number, ticks: number }>} */
  const all = new Map();
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(name) : undefined;
    if (!fields) continue;
    // Counted from the state, which is field 3: 4 ppid, 14 utime, 15 stime, 16 cutime, 17 cstime (of children waited
    // for).
    const [, parent = 0] = fields;
    const ticks = fields.slice(11, 15).reduce((sum, value) => sum + value, 0);
    all.set(Number(name), { parent, ticks });
  }
  const isInTree = (/** @type {number} */ pid) => {
    for (let at = pid; at > 0; at = all.get(at)?.parent ?? 0) if (at === root) return true;
    return false;
  };
  let ticks = 0;
  for (const [pid, process] of all) if (isInTree(pid)) ticks += process.ticks;
  return ticks * microsPerTick;
}

/** CPU microseconds this machine has spent working, on all processors and for all processes. */
export function cpuMicrosOfMachine() {
  microsPerTick ??= 1e6 / ticksPerSecond();
  const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] =
    readFileSync('/proc/stat', 'utf8').slice(0, 200).split('\n')[0]?.split(/\s+/).map(Number) ?? [];
  return (user + nice + system + irq + softirq + steal) * microsPerTick;
}

/**
 * Resident memory of a process and its children.
 * @param {number} pid
 * @returns {number}
 */
export function rssMegabytes(pid) {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return children.reduce((sum, child) => sum + rssMegabytes(Number(child)), Number(kilobytes) / 1024);
}

/**
 * The fields after the name, which is in parentheses and may hold anything.
 * @param {string} pid
 * @returns {number[] | undefined} undefined if it has just ended
 */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
  } catch {
    return undefined;
  }
}
