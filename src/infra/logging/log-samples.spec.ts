import { describe, expect, it } from 'vitest';
import { LogSamples } from './log-samples.js';

describe('samples for the log', () => {
  it('are the first of each kind in a while, with how many there were since the last one', () => {
    let now = 5;
    const samples = new LogSamples(1000, () => now);
    expect([samples.pick('a'), samples.pick('a'), samples.pick('a')]).toEqual([1, undefined, undefined]);
    expect([samples.pick('b'), samples.pick('b')]).toEqual([1, undefined]);
    now += 999;
    expect(samples.pick('a')).toBeUndefined();
    now += 1;
    expect([samples.pick('a'), samples.pick('a')]).toEqual([4, undefined]);
    now += 60_000;
    expect([samples.pick('a'), samples.pick('b')]).toEqual([2, 2]);
  });
});
