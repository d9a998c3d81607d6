import { resolve } from 'node:path';
import { CannotConnect } from '../cannot-connect.js';
import { sqlState } from './postgres-errors.js';

/** Of the errors that the embedded database throws: it knows a system of its own, with numbers of its own (WASI). */
const codes: Record<number, string> = {
  2: 'EACCES',
  19: 'EDQUOT',
  29: 'EIO',
  51: 'ENOSPC',
  54: 'ENOTDIR',
  63: 'EPERM',
  69: 'EROFS',
};

const full = 'Its disk is full: make room there, and start again.';
const notAllowed = 'This user may not write there: make it the owner, or set DATA_DIR to a directory of its own.';
const noDirectory = 'A file is in its place, or on the way there: set DATA_DIR to a directory.';

/** By the code of the system, or by SQLSTATE. */
const remedies: Record<string, string> = {
  ENOSPC: full,
  EDQUOT: full,
  '53100': full,
  EROFS: 'That file system is read-only: mount it otherwise, or set DATA_DIR to a directory that can be written.',
  // Node says so of a directory that a read-only file system does not let it make.
  ENOENT:
    'It is not there and cannot be made: that file system may be read-only. Set DATA_DIR to a directory that can be written.',
  EACCES: notAllowed,
  EPERM: notAllowed,
  ENOTDIR: noDirectory,
  EEXIST: noDirectory,
  EIO: 'That disk fails: look at the log of the system.',
};

/** All that the embedded database says where it cannot open its own files, whatever the cause. */
const notOpened = 'PGlite failed to initialize properly';
const notOpenedRemedy =
  'Its files are of another user, or damaged: make this user the owner of all of them (chown -R), put a copy in their place, or set DATA_DIR to another directory.';

const isOnTheWay = (path: string, directory: string): boolean =>
  path.startsWith(directory) || directory.startsWith(path);

/** An error of the start, for an operator where it says that `DATA_DIR` is of no use; any other one as it is. */
export function explainDirectory(directory: string, error: unknown): unknown {
  const { name, errno, code, path, message } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  // Another file may be the one that is of no use. An error of writing to one that is open names none.
  if (path !== undefined && !isOnTheWay(resolve(path), resolve(directory))) return error;
  const known = name === 'ErrnoError' ? codes[errno!] : (sqlState(error) ?? code);
  const remedy = message === notOpened ? notOpenedRemedy : remedies[known ?? ''];
  if (remedy === undefined) return error;
  const cause = name === 'ErrnoError' ? { code: known } : error;
  return new CannotConnect(`The embedded database in DATA_DIR (${directory})`, cause, remedy);
}
