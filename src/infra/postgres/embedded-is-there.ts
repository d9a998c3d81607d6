import { statSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidSettings, type Settings } from '../../config/settings.js';
import { explainDirectory } from './directory-trouble.js';

/**
 * Whether there is an embedded database. To open one that is not there makes it.
 * @throws {CannotConnect} where that cannot be seen: the directory may be that of another user
 */
export function isEmbeddedThere(directory: string): boolean {
  try {
    return statSync(join(directory, 'pglite', 'PG_VERSION')).isFile();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw explainDirectory(directory, error);
  }
}

/**
 * For programs that work on what is there. Those that cron starts have no variables of a shell: without `DATABASE_URL`
 * they would make an empty database, find nothing to do in it, and end well each minute, while retries wait.
 * @throws {InvalidSettings} where there is neither a server nor an embedded database
 */
export function requireDatabase({ DATABASE_URL, DATA_DIR }: Settings): void {
  if (DATABASE_URL || isEmbeddedThere(DATA_DIR)) return;
  throw new InvalidSettings(
    `DATABASE_URL is not set, and there is no embedded database in DATA_DIR (${DATA_DIR}). Give this program the settings that the processes of Heraut have.`,
  );
}
