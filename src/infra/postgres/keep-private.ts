import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { Logger } from '@nestjs/common';

/** Whether anybody but its owner can get at what is in it. Windows knows no such modes. */
const isOpenToOthers = (directory: string): boolean =>
  process.platform !== 'win32' && (statSync(directory).mode & 0o077) !== 0;

/**
 * Makes the directory of the embedded database, and has it be its owner's alone. PGlite lets everybody read and write
 * the files that it makes, whatever the umask, and `DATA_DIR` itself may be open to all: systemd makes its
 * `StateDirectory` so. Any user of the machine could read what is published, and overwrite tables.
 */
export function keepPrivate(directory: string, chmod = chmodSync): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  if (!isOpenToOthers(directory)) return;
  let error: unknown;
  try {
    chmod(directory, 0o700);
  } catch (thrown) {
    error = thrown; // it is of another user who lets this one write there
  }
  if (!isOpenToOthers(directory)) return;
  // A file system without modes may say nothing (CIFS, the drives of Windows in WSL).
  const advice =
    'Other users of this machine may be able to read and change it: have its owner chmod it to 0700, or use a file system that has modes.';
  new Logger('Postgres').warn({ event: 'postgres.directory-not-private', directory, error, advice });
}
