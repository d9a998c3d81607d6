// Everything a change has to pass, on a machine with only Node: installs missing programs, checks format, lint, types
// and arrows, builds, starts private servers, runs the tests, and ends with `tests: N passed, N failed`.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { buildWhenNeeded, installWhenNeeded, projectDirectory, requireNode } from './ready-to-run.mjs';
import { findOrInstallChromium } from './private-servers/programs.mjs';
import { makeScratchDirectory } from './scratch-directory.mjs';
import { readPlaywrightResult, readVitestResult } from './test-results.mjs';

const startedAt = Date.now();
const log = (/** @type {string} */ line) => {
  console.log(`[${((Date.now() - startedAt) / 1000).toFixed(1).padStart(5)} s] ${line}`);
};
const bin = (/** @type {string} */ path) => join(projectDirectory, 'node_modules', path);
const node = process.execPath;

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
/** @type {ReturnType<typeof import('./private-servers.mjs').startPrivateServers> | undefined} */
let starting;
/** @type {import('./scratch-directory.mjs').ScratchDirectory | undefined} */
let scratch;
let interrupted = false;
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    interrupted = true;
    // Process groups of their own, so that the tests' own children end as well.
    for (const { pid } of running) if (pid) killGroup(pid);
  });
}

let passed = 0;
/** @type {string[]} */
const failures = [];
try {
  requireNode();
  await installWhenNeeded(log);
  scratch = makeScratchDirectory();
  const { path: scratchPath } = scratch;
  log(`data of the tests: ${scratchPath}`);
  const { startPrivateServers } = await import('./private-servers.mjs');
  log('starting private PostgreSQL, RabbitMQ and Redis, and meanwhile …');
  // They wait for each other more than they work: they are ready when the checks are done.
  starting = startPrivateServers(log, { fsync: false });
  starting.catch(() => {}); // told where they are waited for
  await check('format', node, [bin('oxfmt/bin/oxfmt'), '-c', 'oxfmt.config.mjs', '--check']);
  // The types of the console's client come from the compiled program.
  await buildWhenNeeded(log);
  // Longer than the other checks together: the tests begin beside it.
  const linted = check('lint, types and arrows', node, [
    bin('oxlint/bin/oxlint'),
    '-c',
    'oxlint.config.mjs',
    '--deny-warnings',
  ]);
  // The databases that are copied for the tests, meanwhile.
  const migrating = starting.then(({ postgres }) => migrate(postgres.url, scratchPath));
  migrating.catch(() => {}); // told where they are waited for
  await check('generated documentation', node, ['scripts/generate-configuration-docs.mjs', '--check']);
  await check('schema of the configuration file', node, ['scripts/generate-configuration-schema.mjs', '--check']);
  await check('licences', node, ['scripts/licences.mjs', '--check']);
  // Only there: a test on a developer's machine needs no network.
  if (process.env.CI) await check('npm audit', node, ['scripts/audit.mjs'], (output) => output.trim());
  const servers = await starting;
  const environment = { ...servers.environment, ...(await migrating) };
  const words = process.argv.slice(2);
  const isForConsole = (/** @type {string} */ word) => word.startsWith('web/');
  const isForVitest = words.length === 0 || !words.every(isForConsole);
  const isInBrowser = words.length === 0 || words.some(isForConsole);
  if (!interrupted) {
    // At once: each leaves a core idle for a third of its time. One that cannot run does not end the others.
    const runs = await Promise.allSettled([
      linted,
      isForVitest && runVitest(words, environment, scratchPath),
      isInBrowser &&
        runPlaywright(words.filter(isForConsole), environment, join(scratchPath, 'console.json'), isForVitest),
    ]);
    for (const run of runs) if (run.status === 'rejected') throw run.reason;
  }
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  console.error(message);
  failures.push(message.split('\n', 1)[0] ?? message);
} finally {
  // The lint, where something else failed beside it.
  for (const { pid } of running) if (pid) killGroup(pid);
  const servers = await starting?.catch(() => undefined); // a failure was told above
  await servers?.stop();
  await scratch?.remove();
}
if (interrupted) console.log('interrupted; everything that was started is stopped');
// Once more, together: each was told where it happened, which may be thousands of lines above.
for (const name of failures) console.log(`FAILED ${name}`);
console.log(`tests: ${passed} passed, ${failures.length} failed`);
// Without this, Node closes the handles it still has, and has been seen to wait for one of them for ever.
process.exit(interrupted ? 130 : failures.length > 0 ? 1 : 0);

/**
 * Counts as a test only when it fails.
 * @param {string} name
 * @param {string} program
 * @param {string[]} words
 * @param {(output: string) => string} [verdict] that is shown when it succeeds
 */
async function check(name, program, words, verdict = () => 'ok') {
  if (interrupted) return;
  const { status, output } = await finish(program, words, {}, 'pipe');
  if (interrupted) return;
  log(`${name}: ${status === 0 ? verdict(output) : 'FAILED'}`);
  if (status === 0) return;
  failures.push(name);
  console.log(output);
}

/**
 * Makes the databases that those of the tests are copies of.
 * @param {string} serverUrl
 * @param {string} scratchDirectory
 */
async function migrate(serverUrl, scratchDirectory) {
  const [name, directory] = ['migrated', join(scratchDirectory, 'migrated')];
  const words = ['--liftoff-only', 'test/support/migrated-databases.mjs', serverUrl, name, directory];
  const { status, output } = await finish(node, words, {}, 'pipe');
  if (status !== 0 && !interrupted) throw new Error(`The databases of the tests could not be migrated.\n${output}`);
  return { TEST_DATABASE_TEMPLATE: name, TEST_CLUSTER: join(directory, 'pglite') };
}

/**
 * @param {string[]} paths of the specs; none: all
 * @param {Record<string, string>} environment
 * @param {string} scratchDirectory
 */
async function runVitest(paths, environment, scratchDirectory) {
  log('running the tests …');
  const resultFile = join(scratchDirectory, 'result.json');
  const failedHooksFile = join(scratchDirectory, 'failed-hooks.jsonl');
  const reporters = ['default', 'json', './scripts/failed-hooks-reporter.mjs'].map((name) => `--reporter=${name}`);
  const words = ['run', ...reporters, `--outputFile.json=${resultFile}`, ...paths];
  const { status } = await finish(
    node,
    [bin('vitest/vitest.mjs'), ...words],
    { ...environment, FAILED_HOOKS_FILE: failedHooksFile },
    'all',
  );
  const result = readVitestResult(resultFile, failedHooksFile, projectDirectory);
  for (const line of result.slowest) log(line);
  count('Vitest', status, result);
}

/**
 * The console in a real browser.
 * @param {string[]} paths likewise, from the project's directory
 * @param {Record<string, string>} environment
 * @param {string} resultFile
 * @param {boolean} isBeside other tests: then what it prints is shown when it has ended
 */
async function runPlaywright(paths, environment, resultFile, isBeside) {
  const chromium = findOrInstallChromium(log);
  log('running the tests of the console in a browser …');
  const projects = ['--project=real', '--project=embedded'];
  const specs = paths.map((path) => path.slice('web/'.length));
  const words = ['test', '--config', 'web/playwright.config.ts', ...specs, ...projects];
  const { status, output } = await finish(
    node,
    [bin('@playwright/test/cli.js'), ...words],
    { ...environment, TEST_CHROMIUM: chromium, PLAYWRIGHT_JSON_OUTPUT_NAME: resultFile },
    isBeside ? 'pipe' : 'all',
  );
  if (isBeside) log(`the tests of the console have ended\n${output}`);
  count('Playwright', status, readPlaywrightResult(resultFile, projectDirectory));
}

/**
 * @param {string} runner
 * @param {number | null} status of its process
 * @param {import('./test-results.mjs').Outcome} outcome
 */
function count(runner, status, outcome) {
  passed += outcome.passed;
  failures.push(...outcome.failures);
  if (status !== 0 && outcome.failures.length === 0) failures.push(`${runner} ended with exit status ${status}`);
}

/**
 * @param {string} program
 * @param {string[]} words
 * @param {Record<string, string>} environment
 * @param {'pipe' | 'all'} output
 * @returns {Promise<{ status: number | null, output: string }>}
 */
function finish(program, words, environment, output) {
  const stream = output === 'all' ? 'inherit' : 'pipe';
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, {
      cwd: projectDirectory,
      stdio: ['ignore', stream, stream],
      env: { ...process.env, ...environment },
      detached: true,
    });
    running.add(child);
    /** @type {Buffer[]} */
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (status) => {
      running.delete(child);
      resolve({ status, output: Buffer.concat(chunks).toString() });
    });
    // The signal came while this was being started.
    if (interrupted && child.pid) killGroup(child.pid);
  });
}

/** @param {number} pid */
function killGroup(pid) {
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // it has just ended by itself
  }
}
