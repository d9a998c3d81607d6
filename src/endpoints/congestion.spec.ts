import { beforeEach, describe, expect, it } from 'vitest';
import { Congestion } from './congestion.js';
import { Place } from './room.js';
import { Rooms } from './rooms.js';
import { well, type Verdict } from './verdict.js';

const minuteMs = 60_000;

describe('an endpoint is taken for congested', () => {
  let congestion: Congestion;
  let now: number;
  beforeEach(() => {
    congestion = new Congestion();
    now = 1_000_000;
  });
  const tookEach = (...durations: number[]) => {
    for (const each of durations) congestion.took(each, now);
    return congestion.isCongested;
  };
  const eight = (durationMs: number): number[] => Array.from({ length: 8 }, () => durationMs);

  it('where each of eight answers in a row takes more than two seconds, and nearly twice as long as one did before', () => {
    expect(tookEach(1500, ...eight(2860))).toBe(true);
    expect(tookEach(2840)).toBe(false);
  });

  it('by any eight answers in a row, wherever they begin', () => {
    expect(tookEach(...eight(1500), 1500, ...eight(3000).slice(1))).toBe(false);
    expect(tookEach(3000)).toBe(true);
  });

  it('lastingly, where eight more are as long', () => {
    tookEach(1500, ...eight(3000), ...eight(3000).slice(1));
    expect(congestion.isLasting).toBe(false);
    tookEach(3000);
    expect(congestion.isLasting).toBe(true);
    tookEach(1500);
    expect(congestion.isLasting).toBe(false);
  });

  it('not where it is always slow', () => {
    expect(tookEach(...eight(9000), ...eight(9500), ...eight(17_000))).toBe(false);
  });

  it('not where some answers are slow, and others are not', () => {
    expect(tookEach(...eight(100), ...eight(9000).fill(150, 3, 4))).toBe(false);
  });

  it('not where all takes less than two seconds, however quick it was', () => {
    expect(tookEach(...eight(1), ...eight(2000))).toBe(false);
  });

  it('not any more where it has been as slow for twenty minutes', () => {
    expect(tookEach(...eight(100), ...eight(5000))).toBe(true);
    now += 10 * minuteMs;
    expect(tookEach(...eight(5000))).toBe(true);
    now += 10 * minuteMs;
    expect(tookEach(...eight(5000))).toBe(false);
  });
});

const timeoutMs = 10_000;
const timedOut: Verdict = { kind: 'unanswered', reason: 'no answer within 10 s' };

interface Served {
  well: number;
  timedOut: number;
  /** Seconds until 120 calls were open; undefined: they never were. */
  wideAfter: number | undefined;
}

/**
 * In virtual time, five minutes of a backlog that does not end. @param endOf when the answer comes to a call that
 * begins now
 */
async function serve(endOf: (nowMs: number) => number): Promise<Served> {
  const startMs = 1_000_000;
  let nowMs = startMs;
  const rooms = new Rooms({ places: 512, perUrl: 128, longestWaitMs: minuteMs, now: () => nowMs });
  const served: Served = { well: 0, timedOut: 0, wideAfter: undefined };
  const due = new Map<number, (() => void)[]>();
  let [open, isWaiting] = [0, false];
  const take = (answer: Place | string) => {
    if (!(answer instanceof Place)) return;
    if (++open >= 120) served.wideAfter ??= (nowMs - startMs) / 1000;
    rooms.begin(answer);
    const endMs = endOf(nowMs);
    const isWell = endMs - nowMs <= timeoutMs;
    const [at, durationMs] = isWell ? [endMs, endMs - nowMs] : [nowMs + timeoutMs, timeoutMs];
    const end = () => {
      open--;
      served[isWell ? 'well' : 'timedOut']++;
      rooms.leave(answer, isWell ? well : timedOut, durationMs);
      rooms.giveBack(answer);
    };
    due.set(at, [...(due.get(at) ?? []), end]);
  };
  for (let ms = 0; ms < 5 * minuteMs; ms += 10) {
    nowMs = startMs + ms;
    for (const end of due.get(nowMs) ?? []) end();
    due.delete(nowMs);
    while (!isWaiting) {
      const answer = rooms.enter({
        id: 'subscription',
        callbackUrl: 'http://receiver/',
        maxConcurrency: null,
        credentials: {},
      });
      if (answer instanceof Promise) {
        isWaiting = true;
        void answer.then((later) => {
          isWaiting = false;
          take(later);
        });
      } else take(answer);
    }
    if (ms % 50 === 0) rooms.tick();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return served;
}

/** The way of a call, there and back. */
const wayMs = 10;

/**
 * A receiver that serves so many at a time, each for so long, and has the others wait, also those of which we have
 * given up.
 */
function serving(count: number, eachMs: number): (nowMs: number) => number {
  const free = Array.from({ length: count }, () => 0);
  return (nowMs) => {
    const next = free.indexOf(Math.min(...free));
    const begins = Math.max(nowMs, free[next]!);
    if (begins - nowMs > timeoutMs) return Infinity;
    return (free[next] = begins + eachMs) + wayMs;
  };
}

describe('a receiver with a backlog', () => {
  it.each([
    [4, 1000],
    [4, 500],
    [10, 1000],
    [8, 2000],
    [16, 2000],
  ])(
    'that serves %i at a time, each for %i ms, works all the time and is hardly ever given up',
    async (count, eachMs) => {
      const possible = (count * 5 * minuteMs) / eachMs;
      const { well: answered, timedOut: givenUp } = await serve(serving(count, eachMs));
      expect(answered / possible).toBeGreaterThan(0.9);
      expect(givenUp / possible).toBeLessThan(0.02);
    },
  );

  it.each([100, 3000, 9000])(
    'that takes %i ms for each, however many there are, soon has as many as it may',
    async (eachMs) => {
      const { wideAfter, timedOut: givenUp } = await serve((nowMs) => nowMs + eachMs);
      expect(givenUp).toBe(0);
      expect(wideAfter).toBeLessThan((5 * eachMs + 1000) / 1000);
    },
  );
});
