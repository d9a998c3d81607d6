import { describe, expect, it } from 'vitest';
import { narrowOffset } from './narrow-offset.js';

const hourMs = 3_600_000;

describe('the offset of the ledger’s clock', () => {
  it('is none while the clocks may agree, however slow the first answer is', () => {
    expect(narrowOffset(0, 1000, 1001, 1400)).toBe(0);
    expect(narrowOffset(0, 1000, 1399, 1400)).toBe(0);
  });

  it('is at first no larger than it must be', () => {
    expect(narrowOffset(0, 1000, hourMs + 1004, 1010)).toBe(hourMs - 6);
    expect(narrowOffset(0, 1000, 1004 - hourMs, 1010)).toBe(4 - hourMs);
  });

  it('does not count how long a question waited for a connection', () => {
    const known = hourMs;
    // Waited 4 s, then was answered within 2 ms.
    expect(narrowOffset(known, 1000, 5001 + hourMs, 5002)).toBe(hourMs);
  });

  it('is corrected by the next quick answer, when the first had to wait', () => {
    const first = narrowOffset(0, 1000, 5001 + hourMs, 9002);
    expect(Math.abs(first - hourMs)).toBeGreaterThan(1000);
    const second = narrowOffset(first, 11_000, 11_001 + hourMs, 11_002);
    expect(Math.abs(second - hourMs)).toBeLessThanOrEqual(1);
  });

  it('follows a ledger’s clock that was set, forwards and backwards', () => {
    for (const by of [5 * hourMs, -5 * hourMs])
      expect(Math.abs(narrowOffset(0, 1000, 1001 + by, 1002) - by)).toBeLessThanOrEqual(1);
  });
});
