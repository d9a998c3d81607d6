// The results that the test runners wrote, as a number of passed tests and the names of the failed ones.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

/**
 * @typedef {{ passed: number, failures: string[] }} Outcome a failure is named as a person would look for it: file, then test; and why
 * @typedef {{ fullName: string, status: string, failureMessages?: string[] }} VitestTest
 * @typedef {{ name: string, status: string, message?: string, startTime: number, endTime: number, assertionResults: VitestTest[] }} VitestFile
 * @typedef {{ file: string, suite: string, message: string }} FailedHook a `beforeAll` or `afterAll` of a `describe`
 * @typedef {{ projectName: string, status: string, results?: { error?: { message?: string } }[] }} PlaywrightTest
 * @typedef {{ title: string, file: string, tests: PlaywrightTest[] }} PlaywrightSpec
 * @typedef {{ title: string, suites?: PlaywrightSuite[], specs?: PlaywrightSpec[] }} PlaywrightSuite
 */

/**
 * @param {string} resultFile that Vitest's reporter `json` wrote
 * @param {string} failedHooksFile that failed-hooks-reporter.mjs wrote; it is not there where no hook failed
 * @param {string} directory names of files are relative to it
 * @returns {Outcome & { slowest: string[] }}
 */
export function readVitestResult(resultFile, failedHooksFile, directory) {
  /** @type {{ numPassedTests: number, testResults: VitestFile[] } | undefined} */
  const result = read(resultFile);
  if (!result) return { passed: 0, failures: ['Vitest ended before it wrote its result'], slowest: [] };
  const { numPassedTests: passed, testResults: files } = result;
  const failedHooks = readFailedHooks(failedHooksFile);
  return {
    passed,
    failures: files.flatMap((file) =>
      failuresOf(
        file,
        failedHooks.filter((hook) => hook.file === file.name),
      ).map((name) => `${relative(directory, file.name)}${name}`),
    ),
    slowest: slowest(files).map(({ name, seconds }) => `${seconds.padStart(4)} s  ${relative(directory, name)}`),
  };
}

/**
 * @param {string} resultFile that Playwright's reporter `json` wrote
 * @param {string} directory likewise
 * @returns {Outcome}
 */
export function readPlaywrightResult(resultFile, directory) {
  /**
   * @type {{ config: { rootDir: string }, suites: PlaywrightSuite[], errors: { message?: string }[], stats: { expected: number } }
   *   | undefined}
   */
  const result = read(resultFile);
  if (!result) return { passed: 0, failures: ['Playwright ended before it wrote its result'] };
  const nameOf = (/** @type {PlaywrightSpec} */ { file, title }) =>
    `${relative(directory, join(result.config.rootDir, file))} > ${title}`;
  return {
    passed: result.stats.expected,
    failures: [
      ...result.suites.flatMap(specsOf).flatMap((spec) =>
        spec.tests
          // A test that passes only when it is repeated counts as failed.
          .filter(({ status }) => status === 'unexpected' || status === 'flaky')
          .map(({ projectName, results = [] }) => {
            const [because] = results.flatMap(({ error }) => error?.message ?? []);
            return `${nameOf(spec)} (${projectName})${why(because)}`;
          }),
      ),
      ...result.errors.map(({ message }) => `Playwright${why(message)}`),
    ],
  };
}

/**
 * A file that could not be loaded has no failed test to count, nor one of which a `beforeAll` or `afterAll` failed.
 * @param {VitestFile} file
 * @param {FailedHook[]} failedHooks
 */
function failuresOf({ status, message, assertionResults }, failedHooks) {
  const names = [
    ...assertionResults
      .filter((test) => test.status === 'failed')
      .map(({ fullName, failureMessages = [] }) => ` > ${fullName}${why(failureMessages[0])}`),
    ...failedHooks.map((hook) => ` > ${hook.suite}, before or after its tests${why(hook.message)}`),
  ];
  return names.length === 0 && status === 'failed' ? [why(message)] : names;
}

/**
 * @param {string} file
 * @returns {FailedHook[]}
 */
function readFailedHooks(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

/**
 * Where only the last lines of an output are kept, that is all that is known of a failure.
 * @param {string | undefined} message of several lines, coloured
 */
function why(message) {
  if (!message) return '';
  const [told = ''] = stripVTControlCharacters(message).split(/\n\s+at /, 1);
  return `: ${told.replaceAll(/\s+/g, ' ').trim().slice(0, 300)}`;
}

/**
 * Where the time goes; several files run at once.
 * @param {VitestFile[]} files
 */
function slowest(files) {
  return files
    .map(({ name, startTime, endTime }) => ({ name, took: endTime - startTime }))
    .toSorted((one, other) => other.took - one.took)
    .slice(0, 10)
    .map(({ name, took }) => ({ name, seconds: (took / 1000).toFixed(0) }));
}

/**
 * @param {PlaywrightSuite} suite
 * @returns {PlaywrightSpec[]} titled as Vitest does: with those of the suites within the file
 */
function specsOf({ specs = [], suites = [] }) {
  const inner = suites.flatMap((suite) =>
    specsOf(suite).map((spec) => ({ ...spec, title: `${suite.title} ${spec.title}` })),
  );
  return [...specs, ...inner];
}

/**
 * @param {string} file
 * @returns {any} undefined where the runner ended before it wrote one
 */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
