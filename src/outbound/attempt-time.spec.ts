import { expect, it } from 'vitest';
import { attemptMsOf } from './attempt-time.js';

it.each([
  [0, 1500],
  [300_000, 1500],
  [4500, 1500],
  [4499, 1000],
  [3000, 1000],
  [1500, 500],
  [1499, 250],
  [100, 250],
])('of %i ms for a call (0: no limit), an address of several has %i ms to accept the connection', (limit, attempt) => {
  expect(attemptMsOf(limit)).toBe(attempt);
});
