import { describe, expect, it } from 'vitest';
import { lookupBoundsOf } from './lookup-bounds.js';

describe('the names that may be asked for at the same time', () => {
  it('are six of eight while nothing good is known of them, with the threads that Heraut is started with', () => {
    const bounds = { all: 8, shared: 6, slow: 4, unproven: 6, unprovenOfDomain: 2, ofDomain: 3 };
    expect(lookupBoundsOf(16)).toEqual(bounds);
  });

  it('are one of a silent domain and one of another, with the threads that Node has by itself', () => {
    const bounds = { all: 2, shared: 0, slow: 1, unproven: 2, unprovenOfDomain: 1, ofDomain: 1 };
    expect(lookupBoundsOf(4)).toEqual(bounds);
  });

  it.each(Array.from({ length: 64 }, (_, index) => index + 1))(
    'are no more than there are threads for them, and at least one of each kind, with %i threads',
    (threads) => {
      const { all, slow, unproven, unprovenOfDomain, ofDomain } = lookupBoundsOf(threads);
      expect(all).toBe(Math.ceil(threads / 2));
      for (const bound of [slow, unproven, unprovenOfDomain, ofDomain]) {
        expect(bound).toBeGreaterThanOrEqual(1);
        expect(bound).toBeLessThanOrEqual(all);
      }
      // A domain, and what was slow, leave room for another name of which nothing is known.
      expect(Math.max(slow, unprovenOfDomain)).toBeLessThan(Math.max(2, unproven));
    },
  );
});
