import { expect, it } from 'vitest';
import { pauseAfter } from './run-migrations.js';

it('has a migration pause longer after each try that got no lock, up to a minute: everybody waits behind each', () => {
  const pauses = Array.from({ length: 8 }, (_, tries) => pauseAfter(tries + 1) / 1000);
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  expect(pauseAfter(100_000)).toBe(60_000);
});
