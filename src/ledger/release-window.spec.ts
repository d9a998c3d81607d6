import { describe, expect, it } from '@jest/globals';
import { firstWindow, largestWindow, nextWindow } from './release-window.js';

describe('the window of released deliveries', () => {
  it('doubles only while it was full and more than half of it was settled since', () => {
    expect(nextWindow(64, 0, 64)).toBe(128);
    expect(nextWindow(64, 31, 33)).toBe(128);
    expect(nextWindow(64, 32, 32)).toBe(64);
    expect(nextWindow(64, 0, 10)).toBe(64); // no more were held
    expect(nextWindow(64, 64, 0)).toBe(64);
  });

  it('reaches its largest value within two seconds at an endpoint that keeps up', () => {
    let window = firstWindow;
    let looks = 0;
    while (window < largestWindow) {
      window = nextWindow(window, 0, window);
      looks++;
    }
    expect([looks, nextWindow(window, 0, window)]).toEqual([7, largestWindow]);
  });
});
