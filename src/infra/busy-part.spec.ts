import { describe, expect, it } from 'vitest';
import { busyPart, readStat } from './busy-part.js';

describe('how busy a machine is', () => {
  it('counts waiting for a disk as idle, and time that other virtual machines took as busy', () => {
    expect(readStat('cpu  100 10 50 700 90 5 5 40 30 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n')).toEqual({
      idle: 790,
      total: 1000,
    });
  });

  it('is told in parts, of the process and of the machine', () => {
    const busy = busyPart();
    for (const part of Object.values(busy())) {
      expect(part).toBeGreaterThanOrEqual(0);
      expect(part).toBeLessThanOrEqual(1);
    }
  });
});
