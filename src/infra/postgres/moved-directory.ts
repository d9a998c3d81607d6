import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CannotConnect } from '../cannot-connect.js';

const noteIn = (directory: string): string => join(directory, 'moved-to-postgres');

/**
 * Notes in `DATA_DIR` that Postgres has everything that was in its database: whoever started both would have all that
 * was waiting sent twice.
 * @param to without a password: it is shown
 * @returns takes the note back
 */
export function noteMove(directory: string, to: string): () => void {
  const note = noteIn(directory);
  try {
    writeFileSync(note, `moved to ${to} on ${new Date().toISOString()}\n`, { mode: 0o600, flush: true });
  } catch (error) {
    // On a full disk it is made all the same, empty, and would keep Heraut from being started here.
    rmSync(note, { force: true });
    throw error;
  }
  return () => rmSync(note);
}

/** Says where and when everything was moved; undefined: nothing was. */
export function findMove(directory: string): string | undefined {
  try {
    return readFileSync(noteIn(directory), 'utf8').trim();
  } catch (error) {
    // A file in the place of the directory is told of by whoever needs it.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

export const adviceAfterMove = (directory: string): string =>
  `Set DATABASE_URL to that Postgres: started here as well, Heraut would send again all that was waiting then. If it was not moved, delete ${noteIn(directory)}.`;

/** @throws {CannotConnect} where everything was moved */
export function refuseMoved(directory: string): void {
  const move = findMove(directory);
  if (move === undefined) return;
  const server = `The embedded database in DATA_DIR (${directory})` as const;
  throw new CannotConnect(server, new Error(`everything in it was ${move}`), adviceAfterMove(directory));
}
