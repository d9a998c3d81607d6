import { describe, expect, it } from 'vitest';
import { noCounts } from '../activity/tally.js';
import { bucketsFrom, countedUntil, firstOf, spans, sumOf } from './spans.js';

const now = Date.parse('2026-11-22T12:34:56.789Z');
const iso = (ms: number) => new Date(ms).toISOString();

describe('a span of time in buckets', () => {
  it('ends with the one of now, and has as many as it says', () => {
    expect(iso(firstOf(now, spans['1h']))).toBe('2026-11-22T11:35:00.000Z');
    expect(iso(firstOf(now, spans['24h']))).toBe('2026-11-21T13:00:00.000Z');
    expect(iso(firstOf(now, spans['7d']))).toBe('2026-11-15T13:00:00.000Z');
  });

  it('has zeros where nothing was counted', () => {
    const from = firstOf(now, spans['1h']);
    const counts = { ...noCounts(), delivered: 7 };
    const buckets = bucketsFrom(from, spans['1h'], new Map([[from + 2 * 60_000, counts]]));
    expect(buckets).toHaveLength(60);
    expect(buckets.slice(1, 3)).toEqual([
      { at: '2026-11-22T11:36:00.000Z', ...noCounts() },
      { at: '2026-11-22T11:37:00.000Z', ...counts },
    ]);
    expect(sumOf(buckets)).toEqual(counts);
  });

  it('is counted up to the last ten seconds that every process has had the time to add', () => {
    expect(iso(countedUntil(Date.parse('2026-11-22T12:00:11.999Z')))).toBe('2026-11-22T12:00:00.000Z');
    expect(iso(countedUntil(Date.parse('2026-11-22T12:00:12.000Z')))).toBe('2026-11-22T12:00:10.000Z');
  });
});
