import { randomUUID } from 'node:crypto';
import { access, link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { dateOf } from '../ledger/partitions.js';

/** One that is written is touched every few seconds, until it is read again: much faster. */
const leftAfterMs = 3_600_000;
const unfinishedName = /^heraut-\d{4}-\d\d-\d\d\..*partial$/;
/** File systems without hard links. */
const noLinks: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'];

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
 * Gives a finished file its name: that of the former export of the day, which it replaces, or the next one that nobody
 * has. A file that stands under the name of the day may be all there is of it: of the day itself, when a table of it
 * was restored by hand, or a clock was far ahead, or of another installation.
 * @param own the former export; undefined: none is known
 * @param note is told the name before the file has it: after a crash between the two it is known whose it is
 */
export async function nameFile(
  unfinished: string,
  day: number,
  own: string | undefined,
  note: (file: string) => Promise<unknown>,
): Promise<string> {
  const directory = dirname(unfinished);
  if (own !== undefined && dirname(own) === directory) {
    await rename(unfinished, own);
    await syncDirectory(directory);
    return own;
  }
  for (let nr = 1; ; nr++) {
    const file = fileOf(directory, day, nr);
    if (await isThere(file)) continue;
    await note(file);
    if (!(await moveTo(file, unfinished))) continue;
    await syncDirectory(directory);
    return file;
  }
}

const isThere = (file: string): Promise<boolean> =>
  access(file).then(
    () => true,
    () => false,
  );

/** @returns false: another has taken the name just now */
async function moveTo(file: string, unfinished: string): Promise<boolean> {
  try {
    await link(unfinished, file); // a `rename` would replace it
    await rm(unfinished);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (!noLinks.includes(code)) throw error;
    await rename(unfinished, file);
  }
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
