import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { entriesOf, keyRingOf, KeyRingRefused, newEntry, type KeyRing } from './key-ring.js';

/** @throws {KeyRingRefused} when it cannot be read or holds no keys */
export function readKeyFile(file: string): KeyRing {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { message } = error as Error;
    throw new KeyRingRefused(
      `The key file ${file} cannot be read: ${message}. It has to be there, and this user has to be allowed to read it.`,
    );
  }
  const ring = keyRingOf(entriesOf(text), file);
  if (ring.size === 0) throw new KeyRingRefused(`The key file ${file} holds no keys.`);
  return ring;
}

/**
 * The key ring of the embedded database, beside its data. Only one process has the directory open.
 * @param mayMake whether one may be made: not when something is encrypted already, or a lost file would be replaced by
 *   another
 */
export function embeddedKeyRing(directory: string, mayMake: boolean): KeyRing {
  const file = join(directory, 'secret-keys');
  if (!existsSync(file)) {
    if (!mayMake) return new Map();
    writeWhole(file, `${newEntry()}\n`);
  }
  return readKeyFile(file);
}

/** It is complete, and on the disk, before it is there under its name: half a secret would be taken for one. */
export function writeWhole(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, 'w', 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
}
