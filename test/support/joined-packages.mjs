// Jest loads each file of each package anew for every test file, and Heraut's packages have hundreds. Joined into a few dozen,
// they take a third off what it costs to load the application.
import * as esbuild from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { requireFromHere, unbundledPackages } from '../../scripts/unbundled-packages.mjs';

const project = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
// Others need it before their first line runs; joined with them it would run later.
const external = [...unbundledPackages, 'reflect-metadata'];
const packages = Object.keys(
  /** @type {{ dependencies: Record<string, string> }} */ (require('../../package.json')).dependencies,
).filter((name) => !external.includes(name));

const sources = ['package-lock.json', 'scripts/unbundled-packages.mjs', 'test/support/joined-packages.mjs'];
const hash = createHash('sha256');
for (const source of sources) hash.update(readFileSync(join(project, source)));
const cache = join(project, 'node_modules/.cache/heraut');
const joined = join(cache, `packages-${hash.digest('hex').slice(0, 16)}`);
const fileOf = (/** @type {string} */ name) => name.replace('/', '__');

/** For Jest's `moduleNameMapper`. */
export const joinedPackages = Object.fromEntries(
  packages.map((name) => [`^${name}$`, join(joined, `${fileOf(name)}.mjs`)]),
);

/** Jest calls it before the first test. */
export default async function joinPackages() {
  if (existsSync(joined)) return;
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(join(cache, 'joining-'));
  try {
    for (const name of packages) await writeFile(join(making, `${fileOf(name)}.mjs`), await entryOf(name));
    await esbuild.build({
      absWorkingDir: project,
      entryPoints: packages.map((name) => join(making, `${fileOf(name)}.mjs`)),
      outdir: join(making, 'joined'),
      outExtension: { '.js': '.mjs' },
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      external,
      keepNames: true,
      legalComments: 'none',
      minifyWhitespace: true,
      minifySyntax: true,
      banner: { js: requireFromHere },
      logLevel: 'warning',
    });
    await rename(join(making, 'joined'), joined);
  } catch (error) {
    if (!existsSync(joined)) throw error; // another run made it at the same time
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}

/**
 * A module that exports what the package does. The names have to be listed: those of a CommonJS package are known only when it
 * is loaded.
 * @param {string} name
 */
async function entryOf(name) {
  const exported = /** @type {Record<string, unknown>} */ (await import(name));
  const names = new Set(Object.keys(exported));
  const path = require.resolve(name);
  const isOneFile = import.meta.resolve(name) === pathToFileURL(path).href; // for `import` and `require`
  if (isOneFile && require.cache[path]) for (const key of Object.keys(require(name))) names.add(key);
  // Of a package that is there as ESM and as CommonJS, the mark of the latter is not among the exports of the former.
  const identifiers = [...names].filter((key) => /^[\w$]+$/.test(key) && key !== '__esModule');
  return `export { ${identifiers.join(', ')} } from '${name}';\n`;
}
