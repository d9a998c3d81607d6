import { describe, expect, it } from 'vitest';
import { FairPermits } from './fair-permits.js';
import { settled } from '../../test/support/settled.js';

const never = new AbortController().signal;

/** Acquires for each of them, and tells in which order they got it. */
function acquireAll(permits: FairPermits, names: string[], gone = never): string[] {
  const got: string[] = [];
  for (const name of names) void permits.acquire(name, gone).then((isGiven) => isGiven && got.push(name));
  return got;
}

describe('fair permits', () => {
  it('are so many at once, and so many for one owner', async () => {
    const permits = new FairPermits({ atOnce: 3, ofOne: 2 });
    const got = acquireAll(permits, ['a', 'a', 'a', 'b', 'c', 'c']);
    await settled();
    expect(got).toEqual(['a', 'a', 'b']);
    permits.release('b');
    await settled();
    expect(got).toEqual(['a', 'a', 'b', 'c']);
    permits.release('c');
    await settled();
    expect(got).toEqual(['a', 'a', 'b', 'c', 'c']);
    permits.release('a');
    await settled();
    expect(got).toEqual(['a', 'a', 'b', 'c', 'c', 'a']);
  });

  it('go to each owner in turn, however many one of them waits for', async () => {
    const permits = new FairPermits({ atOnce: 1, ofOne: 1 });
    const got = acquireAll(permits, ['a', 'a', 'a', 'a', 'b', 'b', 'c']);
    await settled();
    while (got.length < 7) {
      permits.release(got.at(-1)!);
      await settled();
    }
    expect(got).toEqual(['a', 'a', 'b', 'c', 'a', 'b', 'a']);
  });

  it('are not given to one that has left, who does not keep others waiting', async () => {
    const permits = new FairPermits({ atOnce: 1, ofOne: 1 });
    const gone = new AbortController();
    const got = acquireAll(permits, ['a']);
    const left = permits.acquire('b', gone.signal);
    const late = acquireAll(permits, ['c']);
    gone.abort();
    expect(await left).toBe(false);
    expect(await permits.acquire('d', gone.signal)).toBe(false);
    await settled();
    expect([got, late]).toEqual([['a'], []]);
    permits.release('a');
    await settled();
    expect(late).toEqual(['c']);
  });
});
