import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A file is written in no time: one that is still empty by then was left by a full disk, or a machine that failed. */
const longestEmptyMs = 10_000;
/** No work takes so long. A process may have the number of one that was killed, above all in a container. */
const longestHeldMs = 3_600_000;

/**
 * Runs `work` while no other process does so with the same file.
 * @param {string} file
 * @param {(line: string) => void} log
 * @param {() => Promise<void>} work
 */
export async function locked(file, log, work) {
  await takeLock(file, log);
  try {
    await work();
  } finally {
    unlock(file);
  }
}

/**
 * After so long a time that another one has taken it, it is that one's.
 * @param {string} file
 */
export function unlock(file) {
  if (readLock(file)?.holder === String(process.pid)) rmSync(file, { force: true });
}

/**
 * @param {string} file
 * @param {(line: string) => void} log
 */
async function takeLock(file, log) {
  let isSaid = false;
  while (!writeLock(file)) {
    const found = readLock(file);
    if (found !== undefined && isStale(found)) {
      removeStale(file, found);
      continue;
    }
    if (found?.holder && !isSaid) {
      log(`waiting for process ${found.holder}, which installs or builds here; if it does not, delete ${file} …`);
      isSaid = true;
    }
    await sleep(200);
  }
}

/**
 * @param {string} file
 * @returns {boolean} false where it is there already
 */
function writeLock(file) {
  let opened;
  try {
    opened = openSync(file, 'wx');
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
  try {
    writeSync(opened, String(process.pid));
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  } finally {
    closeSync(opened);
  }
  return true;
}

/** @typedef {{ holder: string, writtenAt: number, inode: number }} Lock */

/**
 * @param {string} file that another process may remove at any moment
 * @returns {Lock | undefined}
 */
function readLock(file) {
  try {
    const { mtimeMs, ino } = statSync(file);
    return { holder: readFileSync(file, 'utf8'), writtenAt: mtimeMs, inode: ino };
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return undefined;
  }
}

/** @param {Lock} lock */
function isStale({ holder, writtenAt }) {
  const age = Date.now() - writtenAt;
  if (holder === '') return age > longestEmptyMs;
  return age > longestHeldMs || Number(holder) === process.pid || !isRunning(Number(holder));
}

/**
 * Two may have seen the same one: the later one must not remove what the earlier one has written since.
 * @param {string} file
 * @param {Lock} stale
 */
function removeStale(file, stale) {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    return; // another one was first
  }
  const taken = readLock(aside);
  if (taken?.inode === stale.inode && taken.writtenAt === stale.writtenAt) rmSync(aside, { force: true });
  else renameSync(aside, file);
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

const codeOf = (/** @type {unknown} */ error) => /** @type {NodeJS.ErrnoException} */ (error).code;
