import { afterAll, expect } from 'vitest';
import { secretWatch } from './secret-watch.js';

/** Vitest runs this in every test file (`setupFiles`): none of them may have seen a secret in a log or an answer. */
afterAll(() => {
  const leaks = secretWatch.leaks();
  secretWatch.forget();
  expect(leaks).toEqual([]);
});
