import { afterAll, expect } from '@jest/globals';
import { secretWatch } from './secret-watch.js';

/** Jest runs this in every test file (`setupFilesAfterEnv`): none of them may have seen a secret in a log or an answer. */
afterAll(() => {
  expect(secretWatch.leaks()).toEqual([]);
});
