import { describe, expect, it } from 'vitest';
import { Window } from './window.js';

const [first, most] = [8, 512];

/**
 * As many calls as there is room for, all at once, each answered well after that time; then the next ones. @returns how
 * many each time
 */
function waves(window: Window, answersInMs: number, count: number, pauseMs = 0): number[] {
  let now = 1_000_000;
  return Array.from({ length: count }, () => {
    let entered = 0;
    for (; window.hasRoom; entered++) window.enter(now);
    now += answersInMs;
    for (let nr = 0; nr < entered; nr++) {
      window.leave(now);
      window.widen();
    }
    now += pauseMs;
    return entered;
  });
}

describe('the window of an endpoint', () => {
  it.each([10, 900, 1000, 1900, 2000, 3000, 10_000, 60_000])(
    'doubles with each round of good answers, where they take %i ms',
    (answersInMs) => {
      expect(waves(new Window(first, most), answersInMs, 7)).toEqual([8, 16, 32, 64, 128, 256, 512]);
    },
  );

  it('doubles also where what was released comes a second after the answers', () => {
    expect(waves(new Window(first, most), 3000, 4, 1000)).toEqual([8, 16, 32, 64]);
  });

  it('is no wider than twice what was open in the last seconds', () => {
    const window = new Window(first, most);
    waves(window, 10, 7);
    const used = 10;
    for (const now of [1_001_000, 1_002_000, 1_003_000]) {
      for (let nr = 0; nr < used; nr++) window.enter(now);
      for (let nr = 0; nr < used; nr++) window.leave(now + 500);
    }
    expect(window.limit).toBe(2 * used);
  });

  it('is halved by trouble, to one at least, and begins anew with few', () => {
    const window = new Window(first, most);
    waves(window, 10, 3);
    window.halve();
    expect(window.limit).toBe(32);
    for (let nr = 0; nr < 10; nr++) window.halve();
    expect(window.limit).toBe(1);
    window.startSlowly();
    expect(window.limit).toBe(first);
  });
});
