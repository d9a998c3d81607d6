// Preloaded into a process with the embedded database (`--import`): its disk has no room for another file of Postgres'
// log, once the file that FULL_LOG_DISK names is there.
import fs from 'node:fs';
import { basename } from 'node:path';

const full = process.env['FULL_LOG_DISK'] ?? '';
const { openSync, writeSync } = fs;
/** @type {Set<number>} */
const ofLog = new Set();

fs.openSync = (path, ...also) => {
  const descriptor = openSync(path, ...also);
  if (basename(String(path)).startsWith('xlogtemp')) ofLog.add(descriptor);
  else ofLog.delete(descriptor); // the number is used again
  return descriptor;
};

/** @type {(...given: any[]) => number} */
const write = (descriptor, ...also) => {
  if (ofLog.has(descriptor) && fs.existsSync(full))
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { errno: -28, code: 'ENOSPC' });
  return /** @type {any} */ (writeSync)(descriptor, ...also);
};
fs.writeSync = write;
