import { describe, expect, it } from 'vitest';
import { RefusalCounts } from './refusal-counts.js';

const begin = 1_800_000_000_000;

function setUp(limit: number) {
  const clock = { now: begin };
  return { clock, counts: new RefusalCounts(limit, () => clock.now) };
}

/** How many of so many refusals were within the limit. */
const admitted = (counts: RefusalCounts, keys: string[], many: number) =>
  Array.from({ length: many }, () => counts.add(keys)).filter((isUsedUp) => !isUsedUp).length;

describe('counts of refusals', () => {
  it('admit as many as the limit under a key, and as many again in the next minute', () => {
    const { clock, counts } = setUp(3);
    expect(counts.isUsedUp('a')).toBe(false);
    expect(admitted(counts, ['a'], 10)).toBe(3);
    expect([counts.isUsedUp('a'), counts.isUsedUp('b')]).toEqual([true, false]);
    clock.now = begin + 59_999;
    expect(admitted(counts, ['a'], 10)).toBe(0);
    clock.now = begin + 60_000;
    expect(counts.isUsedUp('a')).toBe(false);
    expect(admitted(counts, ['a'], 10)).toBe(3);
  });

  it('count under several keys, unless one of them has used up its own', () => {
    const { counts } = setUp(3);
    expect(admitted(counts, ['a', 'b'], 2)).toBe(2);
    expect(admitted(counts, ['a', 'c'], 5)).toBe(1);
    expect(admitted(counts, ['b'], 5)).toBe(1);
    expect(admitted(counts, ['c'], 5)).toBe(2);
  });

  it('say in whole seconds when the next minute begins, never none', () => {
    const { clock, counts } = setUp(3);
    expect(counts.secondsLeft).toBe(60);
    clock.now = begin + 59_001;
    expect(counts.secondsLeft).toBe(1);
    clock.now = begin + 59_999.9;
    expect(counts.secondsLeft).toBe(1);
  });

  it('forget those that have been quiet longest, rather than to keep any number', () => {
    const { counts } = setUp(2);
    admitted(counts, ['first'], 2);
    for (let other = 0; other < 19_999; other++) counts.add([String(other)]);
    expect(counts.isUsedUp('first')).toBe(true); // looked at: it is the latest again
    counts.add(['one more']);
    expect(admitted(counts, ['0'], 3)).toBe(2);
    for (let other = 0; other < 20_000; other++) counts.add([`again ${other}`]);
    expect(counts.isUsedUp('first')).toBe(false);
  });
});

describe('counts of refusals of several processes', () => {
  /** The counts that Redis would have. */
  function shared(limit: number, processes: number) {
    const sums = new Map<string, number>();
    let told = 0;
    const share = (key: string, minute: number, count: number): Promise<number> => {
      told++;
      const sum = (sums.get(`${key} ${minute}`) ?? 0) + count;
      sums.set(`${key} ${minute}`, sum);
      return Promise.resolve(sum);
    };
    const counts = Array.from({ length: processes }, () => new RefusalCounts(limit, () => begin, share));
    return { counts, told: () => told };
  }

  it('are one, but for a tenth of the limit for each process', async () => {
    const { counts } = shared(100, 4);
    let total = 0;
    for (let round = 0; round < 200; round++) {
      for (const each of counts) total += each.add(['a']) ? 0 : 1;
      await Promise.resolve();
    }
    expect(total).toBeGreaterThanOrEqual(100);
    expect(total).toBeLessThanOrEqual(140);
    expect(counts.every((each) => each.isUsedUp('a'))).toBe(true);
  });

  it('are told ten times a minute at most, however many refusals there are', async () => {
    const { counts, told } = shared(100, 1);
    for (let refusal = 0; refusal < 10_000; refusal++) counts[0]!.add(['a']);
    await Promise.resolve();
    expect(told()).toBe(10);
  });

  it('limit each process by itself while nothing can be shared', async () => {
    const counts = new RefusalCounts(
      20,
      () => begin,
      () => Promise.reject(new Error('gone')),
    );
    for (let refusal = 0; refusal < 100; refusal++) {
      counts.add(['a']);
      await Promise.resolve();
    }
    expect(counts.isUsedUp('a')).toBe(true);
  });
});
