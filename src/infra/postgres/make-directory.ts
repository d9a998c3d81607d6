import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The directory itself, or the nearest one above it that is there; a file may be in its place. */
export function nearestExisting(directory: string): string {
  let path = resolve(directory);
  // The root is there, or nothing is.
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path);
  return path;
}

/**
 * Makes a directory, for its owner alone, and those above it that are missing. Not with `recursive`: below a directory
 * in which mkdir always answers ENOENT, as in /proc, Node tries for ever, and nothing else happens in the process.
 */
export function makeDirectory(directory: string): void {
  const existing = nearestExisting(directory);
  const missing: string[] = [];
  for (let path = resolve(directory); path !== existing; path = dirname(path)) missing.unshift(path);
  for (const path of missing) makeLevel(path);
}

function makeLevel(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process that starts was faster; where it is a file, what comes next says so.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
