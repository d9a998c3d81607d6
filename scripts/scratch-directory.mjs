import { chmodSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { makeGuardedDirectory } from './private-servers.mjs';

/** A file system in memory, where the system has one. */
const inMemory = '/dev/shm';
/**
 * Bytes. RabbitMQ blocks publishers below 1 GB (rabbitmq.conf); the databases and their logs need less than the rest.
 */
const enough = 4e9;

/**
 * @typedef {object} ScratchDirectory
 * @property {string} path
 * @property {() => Promise<void>} remove
 */

/**
 * Makes the directory in which this process, and those that it starts, keep their temporary files from now on. It is
 * removed however this process ends.
 *
 * In memory if it fits: every database of a test is hundreds of small files, and to make a file on a disk can take a
 * millisecond of a processor.
 * @returns {ScratchDirectory}
 */
export function makeScratchDirectory() {
  const { directory: path, remove } = makeGuardedDirectory('tests', hasRoom(inMemory) ? inMemory : tmpdir());
  chmodSync(path, 0o755); // PostgreSQL runs as another user when we are root
  process.env.TMPDIR = path;
  return { path, remove };
}

/** @param {string} directory */
function hasRoom(directory) {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= enough;
  } catch {
    return false; // this system has none
  }
}
