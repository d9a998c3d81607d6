import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { localOf, momentOf, otherMomentOf, readTime } from './moment.ts';

const field = (value: string, badInput = false) => ({ value, validity: { badInput } });

describe('what is typed into a field for a time', () => {
  it('is a moment where all of it is there', () => {
    expect(readTime(field('2026-11-28T02:00'))).toEqual({ moment: new Date('2026-11-28T02:00').toISOString() });
  });

  it('is nothing only where nothing is typed', () => {
    expect(readTime(field(''))).toEqual({ moment: undefined });
  });

  it.each([
    ['a year of two digits, which the browser takes for one of the first century', field('0026-11-28T02:00')],
    ['a time of which a part is missing', field('', true)],
  ])('is wrong where it is %s', (_, typed) => {
    expect(readTime(typed)).toBe('wrong');
  });
});

describe('a time of the nights in which the clock of Amsterdam is set', () => {
  beforeAll(() => vi.stubEnv('TZ', 'Europe/Amsterdam'));
  afterAll(() => vi.unstubAllEnvs());

  it.each(['2027-03-28T02:00', '2027-03-28T02:30', '2027-03-28T02:59:59'])(
    'is wrong where there is none: %s',
    (local) => {
      expect(readTime(field(local))).toBe('wrong');
    },
  );

  it.each([
    ['2027-03-28T01:59', '2027-03-28T00:59:00.000Z'],
    ['2027-03-28T03:00', '2027-03-28T01:00:00.000Z'],
  ])('is a moment right beside that hour: %s', (local, moment) => {
    expect(momentOf(local)).toBe(moment);
    expect(localOf(moment)).toBe(local);
    expect(otherMomentOf(moment)).toBeUndefined();
  });

  it('is a moment with a zone of its own whichever hour that is here', () => {
    expect(momentOf('2027-03-28T02:30:00+00:00')).toBe('2027-03-28T02:30:00.000Z');
    expect(momentOf('2027-03-28T01:30:00.000Z')).toBe('2027-03-28T01:30:00.000Z');
  });

  it('has another moment where the clock shows it twice', () => {
    const both = ['2026-10-25T00:45:00.000Z', '2026-10-25T01:45:00.000Z'] as const;
    expect(both.map((moment) => localOf(moment))).toEqual(['2026-10-25T02:45', '2026-10-25T02:45']);
    expect(both.map(otherMomentOf)).toEqual([both[1], both[0]]);
  });

  it.each(['2026-10-24T23:59:00.000Z', '2026-10-25T02:00:00.000Z', '2026-07-01T00:00:00.000Z'])(
    'has no other moment at %s',
    (moment) => {
      expect(otherMomentOf(moment)).toBeUndefined();
    },
  );
});
