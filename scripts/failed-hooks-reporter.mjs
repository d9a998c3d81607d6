import { appendFileSync } from 'node:fs';

/**
 * For Vitest, whose reporter `json` has the errors of tests and of files, but not those of a `beforeAll` or `afterAll`
 * of a `describe`. Writes each as a line of JSON to the file that FAILED_HOOKS_FILE names: `FailedHook` of
 * test-results.mjs.
 * @implements {Partial<import('vitest/node').Reporter>}
 */
export default class FailedHooks {
  /** @param {import('vitest/node').TestSuite} suite */
  onTestSuiteResult(suite) {
    for (const { message } of suite.errors()) {
      const failedHook = { file: suite.module.moduleId, suite: suite.fullName, message };
      appendFileSync(process.env.FAILED_HOOKS_FILE ?? '', `${JSON.stringify(failedHook)}\n`);
    }
  }
}
