import { readFileSync, linkSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeDirectory } from './make-directory.js';

/** Another process has the embedded database open; opening it twice would corrupt it. */
export class DataDirectoryInUse extends Error {
  constructor(
    /** By which process. */
    readonly found: string,
    remedy: string,
    /** Of a process on another host, which may be gone: the file to delete then. */
    readonly lock?: string,
  ) {
    super(`${found}. ${remedy}`);
  }
}

/** Locks that this process holds: what each file says. */
const held = new Map<string, string>();

/**
 * Locks `DATA_DIR` for this process: PGlite itself lets two processes open one directory. The lock is a file with its
 * holder's pid and start time, so that a lock left by a killed process does not block the next start. A new container
 * has another host name, and cannot tell: a process that ends by itself, in whatever way, leaves none. The embedded
 * database runs in its only thread, and has written its last by then.
 * @returns releases the lock
 * @throws {DataDirectoryInUse}
 */
export function lockDirectory(directory: string): () => void {
  makeDirectory(directory);
  const lock = join(directory, 'heraut.lock');
  const mine = `${lock}.${process.pid}`;
  const text = JSON.stringify({ pid: process.pid, startedAt: startOf(process.pid), host: hostname() });
  writeFileSync(mine, text, { mode: 0o600 });
  try {
    for (;;) {
      try {
        linkSync(mine, lock); // atomic: fails when the lock exists
        process.off('exit', releaseAll).on('exit', releaseAll);
        held.set(lock, text);
        return () => release(lock);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      removeIfStale(lock, directory);
    }
  } finally {
    unlinkSync(mine);
  }
}

/** Somebody who took this process for gone may have deleted the file, and another process have made its own. */
function release(lock: string): void {
  const text = held.get(lock);
  held.delete(lock);
  if (text !== undefined && read(lock) === text) rmSync(lock, { force: true });
}

const releaseAll = (): void => [...held.keys()].forEach(release);

function removeIfStale(lock: string, directory: string): void {
  const text = read(lock);
  if (text === undefined) return; // its holder has just released it
  const holder = parse(text);
  if (holder && holder.host !== hostname()) {
    throw new DataDirectoryInUse(
      `${directory} is in use by process ${holder.pid} on host ${holder.host}`,
      `If that host is gone for good, delete ${lock} and start again.`,
      lock,
    );
  }
  if (holder && isAlive(holder)) {
    throw new DataDirectoryInUse(
      `${directory} is in use by process ${holder.pid}`,
      'Stop it first, choose another DATA_DIR, or set DATABASE_URL to run several processes.',
    );
  }
  // Of several processes that find the same stale lock, one renames it. It then checks that it did not move a fresh
  // lock.
  const aside = `${lock}.stale.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (read(aside) === text) unlinkSync(aside);
  else renameSync(aside, lock);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

interface Holder {
  pid: number;
  startedAt: string | undefined;
  host: string;
}

function parse(text: string): Holder | undefined {
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    if (typeof holder?.pid === 'number' && typeof holder.host === 'string') return holder as Holder;
  } catch {
    // falls through
  }
  return undefined; // not written by Heraut: stale
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  // After a reboot, or in a restarted container, the same pid may be another process: often this one.
  if (holder.startedAt === undefined) return holder.pid !== process.pid;
  return holder.startedAt === startOf(holder.pid);
}

/** Start time of a process in clock ticks since boot (proc(5), stat field 22); undefined where there is no /proc. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return undefined;
  }
}
