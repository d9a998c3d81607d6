import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/**
 * @typedef {object} Programs
 * @property {string} postgresBinaries directory of `postgres` and `initdb`
 * @property {string} rabbitmqServer
 * @property {string} epmd
 * @property {string} redisServer
 */

/** @type {Record<string, string>} */
const debianPackages = { PostgreSQL: 'postgresql', RabbitMQ: 'rabbitmq-server', Redis: 'redis-server' };

/** The commands of the runbook are run as they are printed. Without them its spec fails, and nothing else does. */
const runbookTools = ['curl', 'jq'];

/** The command that installs them, for the usual systems. */
const remedy = `Install them with the system's packages:
  Debian, Ubuntu:  apt-get install postgresql rabbitmq-server redis-server curl jq   (as root, the tests do this themselves)
  Fedora:          dnf install postgresql-server rabbitmq-server redis curl jq
  macOS:           brew install postgresql rabbitmq redis curl jq
or start Docker with its Compose plugin; then docker/compose.test.yml is used.`;

/** @returns {{ found: Partial<Programs>, missing: string[] }} */
function findPrograms() {
  const postgres = newestPostgres() ?? onPath('postgres');
  const found = {
    postgresBinaries: postgres && dirname(realpathSync(postgres)),
    // The wrapper that Debian puts on the PATH changes user and paths; the program itself does not.
    rabbitmqServer: executable('/usr/lib/rabbitmq/bin/rabbitmq-server') ?? onPath('rabbitmq-server'),
    epmd: onPath('epmd') ?? executable('/usr/lib/erlang/bin/epmd'),
    redisServer: onPath('redis-server') ?? onPath('valkey-server'),
  };
  const missing = [
    ...(found.postgresBinaries && existsSync(join(found.postgresBinaries, 'initdb')) ? [] : ['PostgreSQL']),
    ...(found.rabbitmqServer && found.epmd ? [] : ['RabbitMQ']),
    ...(found.redisServer ? [] : ['Redis']),
  ];
  return { found, missing };
}

/**
 * The programs themselves where they are or can be installed; undefined where Docker Compose has to serve.
 * @param {(line: string) => void} log
 * @returns {Programs | undefined}
 * @throws {Error} that says what to install, if there is no way
 */
export function findOrInstallPrograms(log) {
  let { found, missing } = findPrograms();
  const wanted = [...missing, ...runbookTools.filter((name) => onPath(name) === undefined)];
  if (wanted.length > 0 && isDebianAsRoot()) {
    log(`installing ${wanted.join(', ')} with apt-get …`);
    installOnDebian(wanted.map((name) => debianPackages[name] ?? name));
    ({ found, missing } = findPrograms());
  }
  if (missing.length === 0) return /** @type {Programs} */ (found);
  if (spawnSync('docker', ['compose', 'ps'], { stdio: 'ignore' }).status === 0) return undefined;
  throw new Error(
    `The tests need ${missing.join(', ')}, which ${missing.length > 1 ? 'are' : 'is'} not here.\n${remedy}`,
  );
}

/**
 * A browser for the tests of the console.
 * @param {(line: string) => void} log
 * @returns {string} its path
 * @throws {Error} that says what to install, if there is none
 */
export function findOrInstallChromium(log) {
  // The first is Debian's Chromium without its windows: the same pages for less.
  const names = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
  const find = () => process.env.CHROMIUM || names.map(onPath).find((path) => path !== undefined);
  const found = find();
  if (found) return found;
  if (isDebianAsRoot()) {
    log('installing Chromium with apt-get …');
    // Without a font every text is a row of boxes, and as wide.
    installOnDebian(['chromium-headless-shell', 'fonts-dejavu-core']);
  }
  const installed = find();
  if (installed) return installed;
  throw new Error(`The tests of the console need Chromium, which is not here. Install it with the system's packages
(Debian: apt-get install chromium-headless-shell fonts-dejavu-core), or set CHROMIUM to the program of any Chromium or Chrome.`);
}

/** Debian keeps the programs of each major version apart, outside the PATH. */
function newestPostgres() {
  const base = '/usr/lib/postgresql';
  const majors = existsSync(base) ? readdirSync(base).map(Number).filter(Number.isInteger) : [];
  const [newest] = majors.toSorted((a, b) => b - a);
  return newest === undefined ? undefined : executable(join(base, String(newest), 'bin/postgres'));
}

/** @param {string} name */
function onPath(name) {
  const directories = [
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
    '/opt/homebrew/sbin',
  ];
  return directories.map((directory) => executable(join(directory, name))).find((path) => path !== undefined);
}

/** @param {string} path */
function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

function isDebianAsRoot() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && onPath('apt-get') !== undefined;
}

/**
 * Debian starts a server when it installs one; this file is how one tells it not to (deb-systemd-invoke, invoke-rc.d).
 */
const startPolicy = '/usr/sbin/policy-rc.d';

/** @param {string[]} packages */
function installOnDebian(packages) {
  const before = existsSync(startPolicy) ? readFileSync(startPolicy) : undefined;
  writeFileSync(startPolicy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    apt('update');
    apt('install', '--yes', '--no-install-recommends', ...packages);
  } finally {
    if (before) writeFileSync(startPolicy, before, { mode: 0o755 });
    else rmSync(startPolicy, { force: true });
  }
}

/** @param {string[]} words */
function apt(...words) {
  const { status, stdout, stderr } = spawnSync('apt-get', ['--quiet', ...words], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0) throw new Error(`apt-get ${words.join(' ')} failed.\n${stdout}${stderr}`);
}
