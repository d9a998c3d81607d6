import { randomUUID } from 'node:crypto';
import { access, link, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { dateOf } from '../ledger/partitions.js';

/** One that is written is touched every few seconds, until it is read again: much faster. */
const leftAfterMs = 3_600_000;
const unfinishedName = /^heraut-\d{4}-\d\d-\d\d\..*partial$/;

/** The former export of a day, as it was noted. */
export interface OwnFile {
  file: string;
  /** Null: a try of an older version named it, and did not note its size. */
  bytes: number | null;
}

const fileOf = (directory: string, day: number, nr: number): string =>
  join(directory, `heraut-${dateOf(day)}${nr === 1 ? '' : `-${nr}`}.ndjson.gz`);

/** Of one try alone: another installation may export the same day to the same directory at this moment. */
export const unfinishedFile = (directory: string, day: number): string =>
  join(directory, `heraut-${dateOf(day)}.${randomUUID()}.partial`);

/** Tries that were cut off, by a crash for example, have left them. */
export async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!unfinishedName.test(name)) continue;
    const file = join(directory, name);
    const found = await stat(file).catch(() => undefined); // its installation has just finished it
    if (found && found.mtimeMs < Date.now() - leftAfterMs) await rm(file, { force: true });
  }
}

/**
 * Gives a finished file its name: that of the former export of the day, or the next one that nobody has. A file that
 * stands under the name of the day may be all there is of it: of the day itself, when a table of it was restored by
 * hand, or a clock was far ahead, or of another installation.
 *
 * The former export goes first, and a name is never taken from a file: whatever ends this on the way, what was noted
 * last is the size of the file that stands there, or there is none. Until the day is dropped, nothing is lost with it.
 * Without hard links a kill may leave an empty file, which is nobody's: another installation may be about to fill it.
 * @param own the former export; undefined: none is known
 * @param note is told name and size before the file has the name: after a crash between the two it is known whose it is
 * @param hardLink of the file system
 */
export async function nameFile(
  unfinished: string,
  day: number,
  own: OwnFile | undefined,
  note: (file: string, bytes: number) => Promise<unknown>,
  hardLink = link,
): Promise<string> {
  const directory = dirname(unfinished);
  const { size } = await stat(unfinished);
  const isOwn = own && dirname(own.file) === directory && (await isStillOwn(own));
  if (isOwn) await rm(own.file, { force: true });
  for (let nr = isOwn ? 0 : 1; ; nr++) {
    const file = nr === 0 ? own!.file : fileOf(directory, day, nr);
    if (await isThere(file)) continue;
    await note(file, size);
    if (!(await moveTo(file, unfinished, hardLink))) continue;
    await syncDirectory(directory);
    return file;
  }
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** It may have been taken away since, and its name by another installation that exports to the same directory. */
const isStillOwn = ({ file, bytes }: OwnFile): Promise<boolean> =>
  stat(file).then(
    ({ size }) => size === bytes,
    () => true,
  );

/** @returns false: another has taken the name just now */
async function moveTo(file: string, unfinished: string, hardLink: typeof link): Promise<boolean> {
  try {
    await hardLink(unfinished, file); // a `rename` would replace it
  } catch (error) {
    // Where a file system over a network repeats a request whose answer was lost, it finds the link that it has made.
    if (isTaken(error)) return isSameFile(file, unfinished);
    return renameTo(file, unfinished); // a file system without hard links: each has an error of its own for that
  }
  await rm(unfinished);
  return true;
}

/** The name is taken first, so that what is replaced is an empty file of this process. */
async function renameTo(file: string, unfinished: string): Promise<boolean> {
  try {
    await writeFile(file, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (isTaken(error)) return false;
    throw error;
  }
  try {
    await rename(unfinished, file);
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
  return true;
}

const isTaken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EEXIST';

async function isSameFile(file: string, unfinished: string): Promise<boolean> {
  const [one, other] = await Promise.all([stat(file), stat(unfinished)]);
  if (one.ino !== other.ino || one.dev !== other.dev) return false;
  await rm(unfinished);
  return true;
}

/** Without it a crash of the machine may undo the renaming. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
