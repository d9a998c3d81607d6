import { describe, expect, it } from 'vitest';
import { firstWindow, largestWindow, nextWindow } from './release-window.js';

describe('the window of released deliveries', () => {
  it('grows by what was settled, while it is full', () => {
    expect(nextWindow(64, 64, 0)).toBe(128);
    expect(nextWindow(64, 64, 40)).toBe(88);
    expect(nextWindow(64, 64, 64)).toBe(64);
    expect(nextWindow(64, 70, 70)).toBe(64); // it was halved meanwhile
    expect(nextWindow(64, 31, 0)).toBe(64); // no more were held
    expect(nextWindow(largestWindow, largestWindow, 0)).toBe(largestWindow);
  });

  it.each([1, 2, 4, 8])(
    'reaches its largest value at an endpoint that answers after %i looks, however slow',
    (latency) => {
      const releasedAt: number[] = [];
      let [window, before, looks] = [firstWindow, 0, 0];
      while (window < largestWindow && looks < 1000) {
        const settled = releasedAt[looks - latency] ?? 0;
        const outstanding = before - settled;
        window = nextWindow(window, before, outstanding);
        releasedAt.push(Math.max(0, window - outstanding));
        before = Math.max(window, outstanding);
        looks++;
      }
      expect([window, looks <= 10 * latency]).toEqual([largestWindow, true]);
    },
  );
});
