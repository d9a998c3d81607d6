import { access, constants, statfs } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Settings } from '../config/settings.js';
import { reasonOf } from '../infra/cannot-connect.js';
import { nearestExisting } from '../infra/postgres/make-directory.js';
import { adviceAfterMove, findMove } from '../infra/postgres/moved-directory.js';
import { examineKeptSuperuser } from './embedded-secrets.js';
import { failed, ok, warning, type Finding } from './finding.js';

/** Versions that still get fixes, by the release plan of Node. */
const [oldestThatRuns, oldestThatIsFixed] = [
  [20, 19],
  [22, 0],
] as const;

/** @param version `process.versions.node` */
export function examineNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isBefore = ([otherMajor, otherMinor]: readonly [number, number]) =>
    major < otherMajor || (major === otherMajor && minor < otherMinor);
  if (isBefore(oldestThatRuns))
    return failed('node', `Node ${version}`, 'Heraut needs Node 20.19 or newer. Install Node 24.');
  if (isBefore(oldestThatIsFixed))
    return warning('node', `Node ${version}`, 'Node 20 gets no security fixes any more. Install Node 24.');
  return ok('node', `Node ${version}`);
}

/** Of a HS256 secret (RFC 7518 §3.2 asks for 32 bytes). */
const fewestBytes = 16;

export function examineSuperuser(settings: Settings): Finding {
  const { DATABASE_URL, SUPERUSER_SECRET } = settings;
  const name = 'superuser';
  if (SUPERUSER_SECRET !== undefined) {
    if (Buffer.byteLength(SUPERUSER_SECRET) >= fewestBytes) return ok(name, 'its secret is set');
    return warning(
      name,
      `SUPERUSER_SECRET has fewer than ${fewestBytes} bytes.`,
      'It can be found by trying, with one token. Set another: openssl rand -base64 32.',
    );
  }
  if (!DATABASE_URL) return examineKeptSuperuser(settings);
  return warning(
    name,
    'SUPERUSER_SECRET is not set: the admin API has no superuser but applications that were made so before.',
    'Set SUPERUSER_SECRET to 32 random bytes (openssl rand -base64 32), the same for every process.',
  );
}

const [fewBytes, tooFewBytes] = [2 ** 30, 2 ** 26];

/** The embedded database; where there is a real one, this machine keeps nothing. */
export async function examineDataDirectory({ DATABASE_URL, DATA_DIR }: Settings): Promise<Finding> {
  const name = 'data-directory';
  if (DATABASE_URL) return ok(name, 'not used: DATABASE_URL is set');
  const directory = resolve(DATA_DIR);
  // The start makes what is missing.
  const place = nearestExisting(directory);
  try {
    // With the dot, a file is none.
    await access(`${place}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
    await mayUse(join(directory, 'pglite'), constants.R_OK | constants.W_OK | constants.X_OK);
    await mayUse(join(directory, 'secret-keys'), constants.R_OK);
    const move = findMove(directory);
    if (move !== undefined)
      return failed(name, `${directory}: everything in it was ${move}`, adviceAfterMove(directory));
    const { bavail, bsize } = await statfs(place);
    const free = bavail * bsize;
    const found = `${directory}: ${inMegabytes(free)} free`;
    const advice = 'Make room, or set DATA_DIR to another disk. The embedded database is for trying Heraut out.';
    if (free < tooFewBytes) return failed(name, found, advice);
    return free < fewBytes ? warning(name, found, advice) : ok(name, found);
  } catch (error) {
    return failed(
      name,
      `${directory}: ${reasonOf(error)}`,
      'Give the user of Heraut read and write rights, to all that is in it (chown -R), or set DATA_DIR.',
    );
  }
}

/**
 * Of something that a start would make. It may be of the user that started Heraut once. @throws the error of the
 * system, where it is there
 */
async function mayUse(path: string, mode: number): Promise<void> {
  try {
    await access(path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

export const inMegabytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20).toLocaleString('en')} MB`;
