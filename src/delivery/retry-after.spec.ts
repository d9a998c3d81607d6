import { describe, expect, it } from 'vitest';
import { askedDelayMs, parseRetryAfter } from './retry-after.js';

const now = Date.parse('2015-10-21T07:26:00Z');
const parse = (value: string) => parseRetryAfter(value, now);

describe('Retry-After', () => {
  it.each([
    ['120', 120_000],
    ['0', 0],
    ['  7 ', 7000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 120_000],
    ['Wednesday, 21-Oct-15 07:28:00 GMT', 120_000],
    ['Wed Oct 21 07:28:00 2015', 120_000],
    ['Sun Nov  1 00:00:00 2015', Date.UTC(2015, 10, 1) - now],
    ['Thu, 29 Feb 2024 00:00:00 GMT', Date.UTC(2024, 1, 29) - now],
  ])('%j asks to wait', (value, ms) => {
    expect(parse(value)).toBe(ms);
  });

  it.each(['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])(
    'with the past date %j asks for nothing',
    (value) => {
      expect(parse(value)).toBe(0);
    },
  );

  it('reads all three forms of a date as the same instant, whatever the time zone here', () => {
    const before = 784_111_777_000 - 60_000;
    for (const value of [
      'Sun, 06 Nov 1994 08:49:37 GMT',
      'Sunday, 06-Nov-94 08:49:37 GMT',
      'Sun Nov  6 08:49:37 1994',
    ]) {
      expect(parseRetryAfter(value, before)).toBe(60_000);
    }
  });

  it('takes a two-digit year more than 50 years ahead for one of the century before', () => {
    expect(parse('Wednesday, 21-Oct-65 07:26:00 GMT')).toBe(Date.UTC(2065, 9, 21, 7, 26) - now);
    expect(parse('Friday, 21-Oct-66 07:26:00 GMT')).toBe(0);
  });

  it('knows no largest number of seconds', () => {
    expect(parse('99999999999999')).toBeGreaterThan(86_400_000);
    expect(parse('9'.repeat(400))).toBe(Infinity);
  });

  it.each([
    '120.5',
    '-5',
    '+5',
    'soon',
    '',
    ' ',
    '1e3',
    '0x10',
    '12 34',
    '2015-10-21T07:28:00Z',
    'Wed, 21 Oct 2015 07:28:00',
    'Wed, 21 Oct 2015 07:28:00 CET',
    'Wed, 21 Okt 2015 07:28:00 GMT',
    'Wed, 32 Oct 2015 07:28:00 GMT',
    'Wed, 00 Oct 2015 07:28:00 GMT',
    'Tue, 31 Feb 2017 00:00:00 GMT',
    'Wed, 21 Oct 2015 24:28:00 GMT',
    'Wed, 21 Oct 2015 07:60:00 GMT',
    'Wed Oct 21 07:28:00 15',
    '\0',
    '１２０',
  ])('%j is ignored', (value) => {
    expect(parse(value)).toBeUndefined();
  });
});

describe('what a receiver asks to wait', () => {
  const asked = (retryAfter: string | undefined, date?: string) =>
    askedDelayMs({ 'retry-after': retryAfter, date }, now);

  it('is nothing where it says nothing, or nothing that can be read', () => {
    expect([asked(undefined), asked('tomorrow'), asked('-60')]).toEqual([null, null, null]);
  });

  it('is at most a day', () => {
    for (const value of ['90000', '9999999999', '9'.repeat(400), 'Fri, 20 Nov 2099 12:00:00 GMT'])
      expect(asked(value)).toBe(86_400_000);
  });

  it('is the first of several', () => {
    expect(askedDelayMs({ 'retry-after': ['5', '9'] as unknown as string }, now)).toBe(5000);
  });

  it('goes by the clock of the receiver, where its answer shows that', () => {
    const inTwoMinutes = 'Wed, 21 Oct 2015 07:28:00 GMT';
    expect(asked(inTwoMinutes)).toBe(120_000);
    expect(asked(inTwoMinutes, 'Wed, 21 Oct 2015 07:27:00 GMT')).toBe(60_000);
    expect(asked(inTwoMinutes, 'Wed, 21 Oct 2015 08:00:00 GMT')).toBe(0);
    expect(asked(inTwoMinutes, 'noon')).toBe(120_000);
    expect(asked('7', 'Wed, 21 Oct 2015 08:00:00 GMT')).toBe(7000);
  });
});
