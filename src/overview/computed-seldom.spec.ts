import { beforeEach, describe, expect, it } from 'vitest';
import { ComputedSeldom } from './computed-seldom.js';

describe('what is computed seldom', () => {
  let now: number;
  let computed: number;
  let finish: (() => void)[];
  let seldom: ComputedSeldom<number>;

  beforeEach(() => {
    now = 0;
    computed = 0;
    finish = [];
    const compute = () => new Promise<number>((resolve) => finish.push(() => resolve(++computed)));
    seldom = new ComputedSeldom(compute, 2000, () => now);
  });

  it('is computed once for all who ask together, and for a while after', async () => {
    const asked = Array.from({ length: 10 }, () => seldom.get());
    expect(finish).toHaveLength(1);
    finish[0]!();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([1]));
    now = 1999;
    expect(await seldom.get()).toBe(1);
    now = 2000;
    const later = seldom.get();
    finish[1]!();
    expect(await later).toBe(2);
  });

  it('is tried again by the next who asks after it has failed', async () => {
    let fails = true;
    const failing = new ComputedSeldom(() => (fails ? Promise.reject(new Error('away')) : Promise.resolve(7)), 2000);
    await expect(Promise.all([failing.get(), failing.get()])).rejects.toThrow('away');
    fails = false;
    expect(await failing.get()).toBe(7);
  });
});
