import { describe, expect, it } from 'vitest';
import { restartDelayMs } from './restart-delay.js';

describe('the time until a process is started again', () => {
  it('is short at first, doubles with each end in a row, and is never longer than 30 s', () => {
    expect([1, 2, 3, 4, 5, 6, 7, 8, 9].map(restartDelayMs)).toEqual([
      250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000,
    ]);
    expect(restartDelayMs(100_000)).toBe(30_000);
  });
});
