import { describe, expect, it } from 'vitest';
import { fromCursor, toCursor } from './entry-cursor.js';

describe('the cursor of a page of the audit log', () => {
  it.each([
    ['1970-01-01T00:00:00.000000Z', '0'],
    ['2026-11-22T06:14:59.123456Z', '9223372036854775807'],
    ['9999-12-31T23:59:59.999999Z', '1'],
  ])('leads back to %s and %s', (at, nr) => {
    expect(fromCursor(toCursor({ at, nr }))).toEqual({ at, nr });
  });

  it.each([
    ['', 'empty'],
    ['AAAA', 'too short'],
    ['A'.repeat(23), 'too long'],
    [`${toCursor({ at: '2026-11-22T06:14:59.123456Z', nr: '1' })}=`, 'written by another encoder'],
    [Buffer.alloc(16, 0xff).toString('base64url'), 'before 1970'],
    [Buffer.alloc(16, 0x7f).toString('base64url'), 'after the year 9999'],
    [Buffer.concat([Buffer.alloc(8), Buffer.alloc(8, 0xff)]).toString('base64url'), 'a number below 0'],
  ])('%j is none: %s', (text) => {
    expect(fromCursor(text)).toBeUndefined();
  });
});
