import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readPlaywrightResult, readVitestResult } from '../scripts/test-results.mjs';

const inProject = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

describe('what the test runners wrote', () => {
  let directory: string;
  let file: string;
  let failedHooks: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'heraut-results-'));
    file = join(directory, 'result.json');
    failedHooks = join(directory, 'failed-hooks.jsonl');
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const write = (result: unknown) => writeFileSync(file, JSON.stringify(result));
  const vitestFile = (name: string, seconds: number, status: string, tests: Record<string, string> = {}) => ({
    name: `/project/${name}`,
    status,
    message: Object.keys(tests).length === 0 ? 'Error: no such module\n    at load (x.ts:1:2)' : '',
    startTime: 1000,
    endTime: 1000 + seconds * 1000,
    assertionResults: Object.entries(tests).map(([fullName, state]) => ({
      fullName,
      status: state,
      failureMessages: state === 'failed' ? ['Error: Waited 30 s\nin vain\n    at held (x.ts:3:4)'] : [],
    })),
  });

  it('names each test of Vitest that failed, and a file whose tests did not begin, and says why', () => {
    write({
      numPassedTests: 1,
      testResults: [
        vitestFile('test/held.spec.ts', 3, 'failed', { 'held goes out': 'failed', 'held stays': 'passed' }),
        vitestFile('test/broken.spec.ts', 12, 'failed'),
      ],
    });
    expect(readVitestResult(file, failedHooks, '/project')).toEqual({
      passed: 1,
      failures: [
        'test/held.spec.ts > held goes out: Error: Waited 30 s in vain',
        'test/broken.spec.ts: Error: no such module',
      ],
      slowest: ['  12 s  test/broken.spec.ts', '   3 s  test/held.spec.ts'],
    });
  });

  it('names each group of tests of Vitest that did not begin, or was not cleaned up, and says why', () => {
    const spec = `
      describe('a server', () => {
        beforeAll(() => { throw new Error('was not ready\\nwithin 90 s'); });
        it('answers', () => {});
      });
      describe('another one', () => {
        afterAll(() => { throw new Error('does not stop'); });
        it('answers', () => {});
      });`;
    writeFileSync(join(directory, 'servers.spec.mjs'), spec);
    const words = ['run', '--globals', '--root', directory, `--outputFile.json=${file}`, '--reporter=json'];
    const { status } = spawnSync(
      process.execPath,
      [
        inProject('node_modules/vitest/vitest.mjs'),
        ...words,
        `--reporter=${inProject('scripts/failed-hooks-reporter.mjs')}`,
      ],
      { env: { PATH: process.env.PATH, FAILED_HOOKS_FILE: failedHooks } },
    );
    expect(status).toBe(1);
    expect(readVitestResult(file, failedHooks, directory)).toMatchObject({
      passed: 1,
      failures: [
        'servers.spec.mjs > a server, before or after its tests: was not ready within 90 s',
        'servers.spec.mjs > another one, before or after its tests: does not stop',
      ],
    });
  });

  it('names each test of Playwright that failed or passed only when it was repeated, with its project, and says why', () => {
    const spec = (title: string, status: string) => ({
      title,
      file: 'login.e2e.ts',
      tests: [
        {
          projectName: 'real',
          status,
          results: [{ error: { message: '\u001b[31mnot visible\u001b[39m\n\nTimeout: 30 s' } }, {}],
        },
      ],
    });
    write({
      config: { rootDir: '/project/web/e2e' },
      stats: { expected: 1 },
      errors: [{ message: 'no such browser\n    at …' }],
      suites: [
        {
          title: 'login.e2e.ts',
          specs: [spec('asks', 'expected'), spec('refuses', 'unexpected')],
          suites: [{ title: 'a login', suites: [{ title: 'that is slow', specs: [spec('waits', 'flaky')] }] }],
        },
      ],
    });
    expect(readPlaywrightResult(file, '/project')).toEqual({
      passed: 1,
      failures: [
        'web/e2e/login.e2e.ts > refuses (real): not visible Timeout: 30 s',
        'web/e2e/login.e2e.ts > a login that is slow waits (real): not visible Timeout: 30 s',
        'Playwright: no such browser',
      ],
    });
  });

  it('count as a failure where there is nothing', () => {
    expect(readVitestResult(file, failedHooks, '/project')).toMatchObject({
      passed: 0,
      failures: [expect.any(String)],
    });
    expect(readPlaywrightResult(file, '/project')).toMatchObject({ passed: 0, failures: [expect.any(String)] });
  });
});
