import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from './clock.js';

const hourMs = 3_600_000;

describe('the clock of the process', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('begins with the time of the system', () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(hourMs);
  });

  it.each([hourMs, -hourMs])('does not follow when the clock of the system is set by %i ms', (by) => {
    const before = systemClock.now();
    const systemTime = Date.now();
    vi.spyOn(Date, 'now').mockReturnValue(systemTime + by);
    const after = systemClock.now();
    expect(after).toBeGreaterThanOrEqual(before);
    expect(after).toBeLessThan(before + hourMs);
  });
});
