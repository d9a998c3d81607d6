import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const projectDirectory = fileURLToPath(new URL('..', import.meta.url));
const inProject = (/** @type {string} */ path) => join(projectDirectory, path);

/** Everything `dist` and the console are made of. */
const sources = [
  'web/src',
  'web/public',
  'web/index.html',
  'web/build.mjs',
  'web/vite.config.ts',
  'web/tsconfig.json',
  'scripts/admin-openapi.mjs',
  'src',
  'migrations',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/bundle.mjs',
  'scripts/unbundled-packages.mjs',
];
const buildStamp = inProject('dist/.built-from');
const builtPage = inProject('web/dist/index.html');
const buildLock = inProject('node_modules/.heraut-build');

/**
 * Installs and builds where needed.
 * @param {(line: string) => void} log
 */
export async function makeReady(log) {
  requireNode();
  installWhenNeeded(log);
  await buildWhenNeeded(log);
}

/**
 * A module of the program as it was compiled. Not by an `import` at the top of a script: it may not be there yet.
 * @param {string} path in `src`, of the compiled file
 * @returns {Promise<any>}
 */
export function compiled(path) {
  return import(pathToFileURL(inProject(`dist/src/${path}`)).href);
}

/** @throws {Error} that says which Node is needed */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Error(`Heraut needs Node.js 20.19 or newer; this is ${process.versions.node}. See https://nodejs.org/.`);
}

/** @param {(line: string) => void} log */
export function installWhenNeeded(log) {
  if (isInstalled()) return;
  log('installing packages (npm ci) …');
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Whether every package of the lock is there in the locked version; those for other systems are not. */
function isInstalled() {
  const installed = readPackages('node_modules/.package-lock.json');
  return (
    installed !== undefined &&
    Object.entries(readPackages('package-lock.json') ?? {}).every(
      ([path, { version, optional }]) => path === '' || optional || installed[path]?.version === version,
    )
  );
}

/**
 * @param {string} lock
 * @returns {Record<string, { version: string, optional?: boolean }> | undefined}
 */
function readPackages(lock) {
  return existsSync(inProject(lock)) ? JSON.parse(readFileSync(inProject(lock), 'utf8')).packages : undefined;
}

/**
 * Compiles `dist` and the console unless they were compiled from exactly these sources. Two at once: one compiles, the
 * other waits.
 * @param {(line: string) => void} log
 */
export async function buildWhenNeeded(log) {
  if (isBuilt()) return;
  await locked(async () => {
    if (isBuilt()) return;
    log('building …');
    await build();
  });
}

/** Also where nothing has changed: `npm run build`. */
export async function buildAnew() {
  await locked(build);
}

async function build() {
  // Sources that change meanwhile are not in it.
  const hash = hashOfSources();
  // Files that are no longer in the sources would stay.
  rmSync(inProject('dist'), { recursive: true, force: true });
  await allEnd(
    runNode('node_modules/typescript/bin/tsc', '--project', 'tsconfig.build.json'),
    runNode('web/build.mjs', '--page'),
  );
  await allEnd(runNode('scripts/bundle.mjs'), runNode('web/build.mjs', '--types'));
  writeFileSync(buildStamp, hash);
}

function isBuilt() {
  return existsSync(builtPage) && existsSync(buildStamp) && readFileSync(buildStamp, 'utf8') === hashOfSources();
}

function hashOfSources() {
  const hash = createHash('sha256');
  for (const path of sources.flatMap((source) => filesBelow(source))) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(inProject(path)))
      .update('\0');
  }
  return hash.digest('hex');
}

/**
 * @param {string} path
 * @returns {string[]}
 */
function filesBelow(path) {
  if (statSync(inProject(path)).isFile()) return [path];
  return readdirSync(inProject(path))
    .toSorted()
    .flatMap((name) => filesBelow(`${path}/${name}`));
}

/** @param {() => Promise<void>} work */
async function locked(work) {
  await lockBuild();
  try {
    await work();
  } finally {
    rmSync(buildLock, { force: true });
  }
}

async function lockBuild() {
  for (;;) {
    try {
      writeFileSync(buildLock, String(process.pid), { flag: 'wx' });
      return;
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
    }
    // The process that wrote it may have been killed while it compiled; an empty one is just being written.
    const holder = existsSync(buildLock) ? readFileSync(buildLock, 'utf8') : '';
    if (holder !== '' && !isRunning(Number(holder))) rmSync(buildLock, { force: true });
    await sleep(200);
  }
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}

/**
 * Standard output is the caller's own: a script may print something there to be piped.
 * @type {import('node:child_process').SpawnOptions & { stdio: ['ignore', 2, 2] }}
 */
const options = { cwd: projectDirectory, stdio: ['ignore', 2, 2] };

/**
 * @param {string} program
 * @param {string[]} words
 */
function run(program, words) {
  const { status, error } = spawnSync(program, words, options);
  if (status !== 0) throw new Error(`${program} ${words.join(' ')} failed.`, { cause: error });
}

/**
 * Beside others, and beside what else this process does.
 * @param {string} script
 * @param {string[]} words
 * @returns {Promise<void>}
 */
function runNode(script, ...words) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [inProject(script), ...words], options);
    child.once('error', reject);
    child.once('exit', (status) => {
      if (status === 0) resolve();
      else reject(new Error(`${script} ${words.join(' ')} failed.`));
    });
  });
}

/**
 * Also where one fails: what goes on writing would be in the way of the next build.
 * @param {Promise<void>[]} works
 */
async function allEnd(...works) {
  for (const work of await Promise.allSettled(works)) if (work.status === 'rejected') throw work.reason;
}
