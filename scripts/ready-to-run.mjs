import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { locked, unlock } from './project-lock.mjs';

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
  'scripts/licence-texts.mjs',
  'licences',
  'scripts/unbundled-packages.mjs',
];
const buildStamp = inProject('dist/.built-from');
const builtPage = inProject('web/dist/index.html');
/**
 * Beside `dist` and `web/dist` until all is built: a build that fails leaves the program that works. One for each
 * process: the children of one that was killed may go on writing.
 */
const newDirectory = `dist.new.${process.pid}`;
/** Not in node_modules, which npm empties while it is held. */
const lock = inProject('.heraut-lock');
const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
const install = 'npm ci --include=dev';

/**
 * Installs and builds where needed. A program that is built needs nothing of what builds it: that may have been pruned.
 * @param {(line: string) => void} log
 */
export async function makeReady(log) {
  requireNode();
  if (isInstalled('to run') && isBuilt()) return;
  await installWhenNeeded(log);
  await buildWhenNeeded(log);
}

/**
 * A module of the program as it was compiled. Not by an `import` at the top of a script: it may not be there yet.
 * @param {string} path in `src`, of the compiled file
 * @param {string} [directory]
 * @returns {Promise<any>}
 */
export function compiled(path, directory = 'dist') {
  return import(pathToFileURL(inProject(`${directory}/src/${path}`)).href);
}

/** @throws {Error} that says which Node is needed */
export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Error(`Heraut needs Node.js 20.19 or newer; this is ${process.versions.node}. See https://nodejs.org/.`);
}

/**
 * Also what only the build and the tests need, in whatever environment. Two at once: one installs, the other waits.
 * @param {(line: string) => void} log
 */
export async function installWhenNeeded(log) {
  if (isInstalled('all')) return;
  await locked(lock, log, async () => {
    if (isInstalled('all')) return;
    log(`installing packages (${install}) …`);
    run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
  });
}

/**
 * Whether every package of the lock is there in the locked version; those for other systems are not.
 * @param {'all' | 'to run'} which `to run`: those that the program names, which npm installs with what they need
 */
function isInstalled(which) {
  const installed = readPackages('node_modules/.package-lock.json');
  const packages = readPackages('package-lock.json') ?? {};
  const named = Object.keys(packages['']?.dependencies ?? {}).map((name) => `node_modules/${name}`);
  const wanted = which === 'all' ? Object.keys(packages) : named;
  return (
    installed !== undefined &&
    wanted.every((path) => {
      const { version, optional } = packages[path] ?? {};
      return path === '' || optional || installed[path]?.version === version;
    })
  );
}

/**
 * @param {string} file
 * @returns {Record<string, { version: string, optional?: boolean, dependencies?: Record<string, string> }> | undefined}
 */
function readPackages(file) {
  const text = textOf(inProject(file));
  return text === undefined ? undefined : JSON.parse(text).packages;
}

/**
 * @param {string} path of a file that another process may remove at any moment
 * @returns {string | undefined}
 */
function textOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
    return undefined;
  }
}

/**
 * Compiles `dist` and the console unless they were compiled from exactly these sources. Two at once: one compiles, the
 * other waits.
 * @param {(line: string) => void} log
 */
export async function buildWhenNeeded(log) {
  if (isBuilt()) return;
  await locked(lock, log, async () => {
    if (isBuilt()) return;
    log('building …');
    await endedTogether(build);
  });
}

/** Also where nothing has changed: `npm run build`. */
export async function buildAnew() {
  try {
    await locked(lock, console.error, () => endedTogether(build));
  } catch (error) {
    if (isInstalled('all')) throw error;
    // The step that failed names the first package that it misses: npm leaves many out where NODE_ENV is `production`.
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${message}\nNot all the packages that it needs are installed: ${install}`, { cause: error });
  }
}

async function build() {
  // Sources that change meanwhile are not in it.
  const hash = hashOfSources();
  // Nobody else builds: they are of builds that have failed or were killed.
  for (const parent of ['', 'web/'])
    for (const name of readdirSync(inProject(parent || '.')))
      if (/^dist\.new(\.|$)/.test(name)) removeDirectory(parent + name);
  await allEnd(
    runNode('node_modules/typescript/bin/tsc', '--project', 'tsconfig.build.json', '--outDir', newDirectory),
    runNode('web/build.mjs', '--page', newDirectory),
  );
  await allEnd(runNode('scripts/bundle.mjs', newDirectory), runNode('web/build.mjs', '--types', newDirectory));
  // A process that is killed in between, or fails, has not built.
  rmSync(buildStamp, { force: true });
  for (const parent of ['web/', '']) replaceDirectory(`${parent}dist`, parent + newDirectory);
  writeFileSync(buildStamp, hash);
}

/**
 * @param {string} present
 * @param {string} next
 */
function replaceDirectory(present, next) {
  const former = `${present}.old`;
  removeDirectory(former);
  try {
    if (existsSync(inProject(present))) renameSync(inProject(present), inProject(former));
    renameSync(inProject(next), inProject(present));
  } catch (error) {
    // A directory of a lower layer of overlayfs, or a mount: it has to stay.
    if (!['EXDEV', 'EBUSY'].includes(/** @type {NodeJS.ErrnoException} */ (error).code ?? '')) throw error;
    if (existsSync(inProject(present)))
      for (const name of readdirSync(inProject(present))) removeDirectory(`${present}/${name}`);
    cpSync(inProject(next), inProject(present), { recursive: true });
    removeDirectory(next);
  }
  removeDirectory(former);
}

/** @param {string} path */
function removeDirectory(path) {
  rmSync(inProject(path), { recursive: true, force: true });
}

function isBuilt() {
  const builtFrom = textOf(buildStamp);
  return builtFrom !== undefined && existsSync(builtPage) && builtFrom === hashOfSources();
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

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();

/**
 * A signal that would end this process ends the children of `work` first, and then this process.
 * @param {() => Promise<void>} work
 */
async function endedTogether(work) {
  /** @type {NodeJS.Signals | undefined} */
  let ended;
  const end = (/** @type {NodeJS.Signals} */ signal) => {
    ended = signal;
    for (const child of children) child.kill(signal);
  };
  for (const signal of signals) process.on(signal, end);
  try {
    await work();
  } finally {
    for (const signal of signals) process.off(signal, end);
    if (ended !== undefined) {
      unlock(lock);
      process.kill(process.pid, ended);
    }
  }
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
    children.add(child);
    child.once('error', reject);
    child.once('close', (status) => {
      children.delete(child);
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
