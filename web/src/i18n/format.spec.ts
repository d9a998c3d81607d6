import { describe, expect, it, vi } from 'vitest';
import { formatFor } from './format.ts';

const [english, dutch] = [formatFor('en'), formatFor('nl')];
const now = Date.parse('2026-11-22T12:00:00Z');
const ago = (seconds: number) => english.relative(now - seconds * 1000, now);

describe('what is shown of numbers and times', () => {
  it('says how long ago in numbers, which are true whatever the date was', () => {
    expect([0, 1, 119, 7_199, 86_400, 47 * 3_600, 71 * 3_600].map(ago)).toEqual([
      'now',
      '1 second ago',
      '1 minute ago',
      '1 hour ago',
      '1 day ago',
      '1 day ago',
      '2 days ago',
    ]);
    expect(dutch.relative(now - 47 * 3_600_000, now)).toBe('1 dag geleden');
    expect(dutch.relative(now + 120_000, now)).toBe('over 2 minuten');
  });

  it('says a date only of what was read on another day', () => {
    const at = new Date(2026, 10, 22, 23, 59, 1).getTime();
    expect(english.asOf(at, at + 58_000)).toBe(english.clock(at));
    expect(english.asOf(at, at + 59_000)).toBe(english.time(at));
    expect(english.asOf(at, at + 86_400_000)).toBe(english.time(at));
  });

  it('names the zone of a whole time, so that the hour that is there twice in autumn is told apart', () => {
    vi.stubEnv('TZ', 'Europe/Amsterdam');
    try {
      // Not made before, in another zone.
      const amsterdam = formatFor('nl-NL');
      expect(['2026-10-25T00:30:00Z', '2026-10-25T01:30:00Z'].map((at) => amsterdam.time(at))).toEqual([
        '25 okt 2026, 02:30:00 CEST',
        '25 okt 2026, 02:30:00 CET',
      ]);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it('makes neither a hundred of what is less, nor nothing of what is more', () => {
    expect([0, 0.000_001, 0.5, 0.999_999, 1].map((share) => english.percent(share))).toEqual([
      '0%',
      '0.01%',
      '50%',
      '99.99%',
      '100%',
    ]);
    expect(dutch.percent(0.9995)).toBe('99,95%');
  });

  it('changes the unit of a duration where rounding reaches the next one', () => {
    expect([999.4, 999.6, 2_500, 90_000, 180_000].map((ms) => english.duration(ms))).toEqual([
      '999 ms',
      '1 sec',
      '2.5 sec',
      '90 sec',
      '3 min',
    ]);
  });
});
