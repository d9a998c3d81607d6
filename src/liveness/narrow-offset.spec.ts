import { describe, expect, it } from '@jest/globals';
import { narrowOffset } from './narrow-offset.js';

const hourMs = 3_600_000;

describe('the offset of the ledger’s clock', () => {
  it('is at first taken from the middle of the time that the answer took', () => {
    expect(narrowOffset(undefined, 1000, hourMs + 1004, 1010)).toBe(hourMs - 1);
  });

  it('does not count how long a question waited for a connection', () => {
    const known = hourMs;
    // Waited 4 s, then was answered within 2 ms.
    expect(narrowOffset(known, 1000, 5001 + hourMs, 5002)).toBe(hourMs);
  });

  it('is corrected by the next quick answer, when the first had to wait', () => {
    const first = narrowOffset(undefined, 1000, 5001 + hourMs, 5002);
    expect(Math.abs(first - hourMs)).toBeGreaterThan(1000);
    const second = narrowOffset(first, 7000, 7001 + hourMs, 7002);
    expect(Math.abs(second - hourMs)).toBeLessThanOrEqual(1);
  });

  it('follows a ledger’s clock that was set, forwards and backwards', () => {
    for (const by of [5 * hourMs, -5 * hourMs])
      expect(Math.abs(narrowOffset(0, 1000, 1001 + by, 1002) - by)).toBeLessThanOrEqual(1);
  });
});
