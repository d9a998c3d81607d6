import { describe, expect, it } from 'vitest';
import { differing } from './differing.js';

describe('what differs', () => {
  it.each<[string, Parameters<typeof differing>, ReturnType<typeof differing>]>([
    ['is all of it where it is new', [null, { a: 1, b: null }], [null, { a: 1, b: null }]],
    ['is all of it where it is gone', [{ a: 1 }, null], [{ a: 1 }, null]],
    ['is nothing where nothing was changed', [{ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }], [{}, {}]],
    [
      'is the fields that have another value',
      [
        { a: 1, b: { c: 1, d: 2 }, e: 5 },
        { a: 2, b: { c: 1, d: 3 }, e: 5 },
      ],
      [
        { a: 1, b: { c: 1, d: 2 } },
        { a: 2, b: { c: 1, d: 3 } },
      ],
    ],
    ['is a field that only one of them has', [{ a: 1 }, { b: 1 }], [{ a: 1 }, { b: 1 }]],
    ['is no field that is undefined in one of them only', [{ a: undefined }, {}], [{}, {}]],
    [
      'is a time as JSON writes it',
      [{ at: null }, { at: new Date(0) }],
      [{ at: null }, { at: '1970-01-01T00:00:00.000Z' }],
    ],
    ['is no time that is the same', [{ at: new Date(5) }, { at: new Date(5) }], [{}, {}]],
    ['is not the order of the fields', [{ a: { b: 1, c: 2 } }, { a: { c: 2, b: 1 } }], [{}, {}]],
  ])('%s', (_, [before, after], expected) => {
    expect(differing(before, after)).toEqual(expected);
  });
});
