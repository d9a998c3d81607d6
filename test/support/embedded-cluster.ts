import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const modules = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const manifest = readFileSync(join(modules, '@electric-sql/pglite/package.json'), 'utf8');
const { version } = JSON.parse(manifest) as { version: string };
const cache = join(modules, '.cache/heraut');
const emptyCluster = join(cache, `pglite-${version}`);

/**
 * Copies there the files that PGlite makes in an empty directory: a database cluster without any table of ours. Making
 * it takes five seconds of a core and always gives the same, so it is made once for each version of PGlite and copied
 * from then on. A test of `npm start` begins without these files. `npm test` has a migrated one to copy instead:
 * migrated-databases.mjs.
 */
export async function copyCluster(to: string, hasTables: boolean): Promise<void> {
  const migrated = hasTables ? process.env.TEST_CLUSTER : undefined;
  if (!migrated && !existsSync(emptyCluster)) await makeEmptyCluster();
  await run('cp', ['-R', migrated ?? emptyCluster, to]);
}

async function makeEmptyCluster(): Promise<void> {
  const { PGlite } = await import('@electric-sql/pglite');
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(join(cache, 'making-'));
  try {
    const pglite = await PGlite.create(join(making, 'pglite'));
    await pglite.close();
    await rename(join(making, 'pglite'), emptyCluster);
  } catch (error) {
    if (!existsSync(emptyCluster)) throw error; // another test process made it at the same time
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
