import { describe, expect, it } from 'vitest';
import { defaultRetryPolicy, delayRange, delaySeconds, formatDuration, planAttempts } from './retry-schedule.js';

const smallest = 0;
const largest = 1 - Number.EPSILON;

describe('the retry schedule', () => {
  it('spreads eight attempts over 23 h 55 m 25 s by default', () => {
    expect(planAttempts(defaultRetryPolicy).map(({ elapsedSeconds }) => formatDuration(elapsedSeconds))).toEqual([
      '0 s',
      '25 s',
      '2 m 5 s',
      '8 m 45 s',
      '35 m 25 s',
      '2 h 22 m 5 s',
      '9 h 28 m 45 s',
      '23 h 55 m 25 s',
    ]);
  });

  it('multiplies the delay by the base factor from failure to failure, up to the cap', () => {
    const delays = [0, 1, 2, 3, 4, 5, 6, 7].map((failures) => delaySeconds(defaultRetryPolicy, failures, largest));
    expect(delays).toEqual([25, 100, 400, 1600, 6400, 25_600, 52_000, 52_000]);
  });

  it('counts attempts from 1 and gives the first no delay', () => {
    expect(planAttempts({ ...defaultRetryPolicy, maxRetries: 1 })).toEqual([
      { attempt: 1, shortestSeconds: 0, plainSeconds: 0, longestSeconds: 0, elapsedSeconds: 0 },
      { attempt: 2, shortestSeconds: 25, plainSeconds: 25, longestSeconds: 25, elapsedSeconds: 25 },
    ]);
  });

  it('plans only the first attempt when there are no retries', () => {
    expect(planAttempts({ ...defaultRetryPolicy, maxRetries: 0 })).toHaveLength(1);
  });

  it('keeps the same delay for ever with a base factor of 1', () => {
    const steady = { ...defaultRetryPolicy, backoffFactor: 3, baseFactor: 1 };
    expect([0, 1, 50].map((failures) => delaySeconds(steady, failures, smallest))).toEqual([3, 3, 3]);
  });

  it('waits the longest delay where the formula leaves the range of numbers', () => {
    const steep = { ...defaultRetryPolicy, backoffFactor: 604_800, baseFactor: 1000, maxRetries: 100 };
    expect(delaySeconds(steep, 200, smallest)).toBe(52_000);
    expect(planAttempts(steep).every(({ elapsedSeconds }) => Number.isFinite(elapsedSeconds))).toBe(true);
  });

  it('varies the delay by half the jitter down and half of it up', () => {
    const jittery = { ...defaultRetryPolicy, jitter: 0.4 };
    expect(delaySeconds(jittery, 1, 0)).toBe(80);
    expect(delaySeconds(jittery, 1, 0.5)).toBeCloseTo(100, 9);
    expect(delaySeconds(jittery, 1, largest)).toBeCloseTo(120, 9);
  });

  it('never exceeds the cap, and still varies the delay at the cap', () => {
    const jittery = { ...defaultRetryPolicy, jitter: 0.2 };
    expect(delayRange(jittery, 6)).toEqual({ shortestSeconds: 46_800, plainSeconds: 52_000, longestSeconds: 52_000 });
    expect(delaySeconds(jittery, 6, 0)).toBe(46_800);
    expect(delaySeconds(jittery, 6, largest)).toBeLessThanOrEqual(52_000);
  });

  it('draws from half the delay to one and a half times it with full jitter', () => {
    expect(delayRange({ ...defaultRetryPolicy, jitter: 1 }, 0)).toEqual({
      shortestSeconds: 12.5,
      plainSeconds: 25,
      longestSeconds: 37.5,
    });
  });
});

describe('a duration as text', () => {
  it.each([
    [0, '0 s'],
    [0.0004, '0 s'],
    [0.05, '0.05 s'],
    [59.9996, '1 m'],
    [60, '1 m'],
    [3605, '1 h 5 s'],
    [86_125, '23 h 55 m 25 s'],
    [86_400, '1 d'],
    [604_861.5, '7 d 1 m 1.5 s'],
  ])('%s seconds reads "%s"', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});
