import { describe, expect, it } from 'vitest';
import { readTime } from './moment.ts';

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
