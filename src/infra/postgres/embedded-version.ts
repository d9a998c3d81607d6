import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CannotConnect } from '../cannot-connect.js';

/** The major version of PostgreSQL that PGlite is, which it says itself only once it has opened a directory. */
export const majorOfEmbedded = 18;

/**
 * A directory belongs to the major version that made it: PGlite says of another one's no more than of a damaged one.
 * @throws {CannotConnect} where another version made it
 */
export function refuseOtherVersion(directory: string): void {
  const major = majorOf(join(directory, 'pglite', 'PG_VERSION'));
  if (major === undefined || major === majorOfEmbedded) return;
  throw new CannotConnect(
    `The embedded database in DATA_DIR (${directory})`,
    new Error(`it was made by PostgreSQL ${major}, and this version of Heraut has ${majorOfEmbedded}`),
    'With the version of Heraut that made it, run `npm run move-to-postgres`, or set DATA_DIR to another directory.',
  );
}

/** Undefined where nothing is there yet, or nothing that a PostgreSQL wrote: opening it says what is wrong. */
function majorOf(file: string): number | undefined {
  try {
    const [, major] = /^(\d+)\s*$/.exec(readFileSync(file, 'utf8')) ?? [];
    return major === undefined ? undefined : Number(major);
  } catch {
    return undefined;
  }
}
