import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { timeAhead, timeInPast } from './options.js';

describe('a time of a command line', () => {
  beforeEach(() => void vi.stubEnv('TZ', 'America/New_York'));
  afterEach(() => void vi.unstubAllEnvs());

  it.each([
    ['2026-11-22', '2026-11-22T00:00:00.000Z'],
    ['2026-11-22T08:00', '2026-11-22T08:00:00.000Z'],
    ['2026-11-22 08:00', '2026-11-22T08:00:00.000Z'],
    ['2026-11-22 08:00:01Z', '2026-11-22T08:00:01.000Z'],
    ['2026-11-22t08:00:01.5z', '2026-11-22T08:00:01.500Z'],
    ['2026-11-22T08:00+01:00', '2026-11-22T07:00:00.000Z'],
    ['2026-11-22 08:00:00-0130', '2026-11-22T09:30:00.000Z'],
  ])('is UTC where it does not say otherwise, whatever the zone of the machine: %s', (text, expected) => {
    expect(new Date(2026, 10, 22, 8).toISOString()).toBe('2026-11-22T13:00:00.000Z'); // it is that zone
    expect([timeInPast(text), timeAhead(text)]).toEqual([expected, expected]);
  });

  it.each([
    '2026-11-22 8:00',
    '2026-11-22 8:00 pm',
    '2026-11-22 08:00 PM',
    '2026-11-22 08',
    '2026-11-22Z',
    '2026-11-22 EST',
    '2026-11-22T08:00 EST',
    '2026-11-22T25:00',
    '2026-13-01',
    '2026-02-30',
    '2026-11-31T08:00',
    '2026-11-22T08:00:00.',
    'yesterday',
  ])('is refused where it could be read in more than one way, or not at all: %s', (text) => {
    expect(() => timeInPast(text)).toThrow('It is a time such as 2026-11-22T08:00Z, or how long ago');
    expect(() => timeAhead(text)).toThrow('It is a time such as 2026-11-22T08:00Z, or how long from now');
  });

  it('may be how long ago, or from now', () => {
    const now = new Date('2026-11-22T08:00:00Z');
    vi.useFakeTimers({ now, toFake: ['Date'] });
    try {
      expect([timeInPast('90m'), timeAhead('2d')]).toEqual(['2026-11-22T06:30:00.000Z', '2026-11-24T08:00:00.000Z']);
    } finally {
      vi.useRealTimers();
    }
  });
});
