import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../infra/clock.js';
import { releaseAll, type HeldWork, type Left } from './release-all.js';

const patienceMs = 15_000;
const minuteMs = 60_000;

describe('a run of the dispatcher releases', () => {
  let nowMs: number;
  let stopping: AbortController;
  /** Deliveries that are left held, on their way to their receivers, and in this process. */
  let [held, released, inHand]: number[] = [];
  let isParked: boolean;
  let looks: number;
  /** Called before each look. */
  let meanwhile: () => void;

  const clock: Clock = {
    now: () => nowMs,
    pause: (ms) => {
      nowMs += ms;
      meanwhile();
      return Promise.resolve();
    },
  };
  /** As many as a window has room for; of a parked endpoint, one. */
  const window = 10;
  const work: HeldWork = {
    release: () => {
      looks++;
      const count = Math.max(0, Math.min(held!, (isParked ? 1 : window) - released!));
      held! -= count;
      released! += count;
      return Promise.resolve(count);
    },
    isAnyInHand: () => Promise.resolve(inHand! > 0),
    findLeft: (): Promise<Left> =>
      Promise.resolve(held! > 0 && !isParked ? 'held' : released! > 0 ? 'released' : 'nothing'),
  };
  const run = () => releaseAll(work, clock, patienceMs, stopping.signal);

  beforeEach(() => {
    [nowMs, held, released, inHand, looks, isParked] = [0, 0, 0, 0, 0, false];
    stopping = new AbortController();
    meanwhile = () => {};
  });

  it('all that is held, also where most looks find the window full', async () => {
    held = 35;
    meanwhile = () => void (nowMs % 1000 === 0 && (released = 0)); // a receiver that takes a second
    expect(await run()).toBe(35);
    expect([held, released]).toEqual([0, 0]);
  });

  it('nothing where nothing is held, and ends at once', async () => {
    expect(await run()).toBe(0);
    expect([looks, nowMs]).toEqual([1, 0]);
  });

  it('those that a worker holds again, after the last was released', async () => {
    held = 10;
    let isFirst = true;
    meanwhile = () => {
      if (nowMs < 500) return;
      [held, released] = [isFirst ? 4 : held!, 0];
      isFirst = false;
    };
    expect(await run()).toBe(14);
    expect(held).toBe(0);
  });

  it('those that this process could not send and held meanwhile', async () => {
    inHand = 1;
    meanwhile = () => {
      if (nowMs === 2 * minuteMs) [held, inHand] = [5, 0];
      if (nowMs > 2 * minuteMs) released = 0;
    };
    expect(await run()).toBe(5);
  });

  it('no more when nothing could be released for longer than a call takes', async () => {
    held = 100;
    expect(await run()).toBe(10);
    expect([held, nowMs]).toEqual([90, patienceMs]);
  });

  it('a probe of a parked endpoint, and no second one where that fails', async () => {
    [held, isParked] = [100, true];
    meanwhile = () => void (nowMs >= 5000 && (released = 0));
    expect(await run()).toBe(1);
    expect([held, looks]).toEqual([99, 1]);
  });

  it('the rest as well where the probe does not fail, although its endpoint is closed a moment later', async () => {
    [held, isParked] = [100, true];
    meanwhile = () => {
      released = 0;
      if (nowMs >= 200) isParked = false;
    };
    expect(await run()).toBe(100);
  });

  it('for five minutes at most, where there is always more', async () => {
    held = Infinity;
    meanwhile = () => void (released = 0);
    await run();
    expect(nowMs).toBe(5 * minuteMs);
  });

  it('no more when it is told to stop', async () => {
    held = 100;
    meanwhile = () => stopping.abort();
    expect(await run()).toBe(10);
  });
});
