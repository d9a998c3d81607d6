import { describe, expect, it } from 'vitest';
import { longestStep, quantileOf, stepOf } from './steps.js';

describe('times that are counted by steps', () => {
  const counted = (times: number[]) => {
    const counts = new Map<number, number>();
    for (const ms of times) counts.set(stepOf(ms), (counts.get(stepOf(ms)) ?? 0) + 1);
    return counts;
  };

  it.each([[0.2], [1], [7], [100], [1234], [60_000], [86_400_000]])('are read back to a fifth: %s ms', (ms) => {
    for (const part of [0.5, 0.95]) {
      const found = quantileOf(counted(Array.from({ length: 100 }, () => ms)), part)!;
      expect(Math.abs(found - ms)).toBeLessThanOrEqual(Math.max(1, ms * 0.2));
    }
  });

  it('tell the time of most, and of nearly all', () => {
    const counts = counted([...Array.from({ length: 90 }, () => 10), ...Array.from({ length: 10 }, () => 5000)]);
    expect(quantileOf(counts, 0.5)).toBeLessThan(13);
    expect(quantileOf(counts, 0.95)).toBeGreaterThan(4000);
  });

  it('have an end for what is longer than anything, and none for nothing', () => {
    expect(stepOf(1e15)).toBe(longestStep);
    expect(quantileOf(new Map(), 0.5)).toBeUndefined();
    expect(quantileOf(new Map([[3, 0]]), 0.5)).toBeUndefined();
  });
});
