import { describe, expect, it } from 'vitest';
import { arrayOf, UnfitValue } from './binary-array.js';

const hexOf = (type: string, values: unknown[]) => (arrayOf(type, values) as Buffer).toString('hex');

/** One dimension, no flags, the element's type, that many elements, counted from 1. */
const header = (oid: number, length: number) =>
  [1, 0, oid, length, 1].map((number) => number.toString(16).padStart(8, '0')).join('');

describe('an array in binary', () => {
  it('has each number behind its size, and a null as size -1', () => {
    expect(hexOf('int', [1, null, -2])).toBe(`${header(23, 3)}0000000400000001ffffffff00000004fffffffe`);
    expect(hexOf('float8', [Infinity])).toBe(`${header(701, 1)}000000087ff0000000000000`);
  });

  it('has a text in UTF-8, unquoted', () => {
    expect(hexOf('text', ['a"\\', '', 'é€'])).toBe(`${header(25, 3)}0000000361225c0000000000000005c3a9e282ac`);
  });

  it('has the bytes of a UUID, however it is spelled', () => {
    const bytes = '0123456789abcdef0123456789abcdef';
    const uuids = ['01234567-89ab-cdef-0123-456789abcdef', '01234567-89AB-CDEF-0123-456789ABCDEF'];
    expect(hexOf('uuid', uuids)).toBe(`${header(2950, 2)}00000010${bytes}00000010${bytes}`);
  });

  it.each([
    '',
    'no',
    '01234567-89ab-cdef-0123-456789abcde',
    '01234567-89ab-cdef-0123-456789abcdeg',
    '01234567-89ab-cdef-0123-456789abcdef1',
    '01234567_89ab-cdef-0123-456789abcdef',
    'é'.repeat(36),
  ])('refuses %j as a UUID', (text) => {
    expect(() => arrayOf('uuid', [text])).toThrow(UnfitValue);
  });

  it.each([2 ** 31, -(2 ** 31) - 1, 0.5, NaN])('refuses %d as an int', (number) => {
    expect(() => arrayOf('int', [number])).toThrow(UnfitValue);
  });

  it('leaves types that are sent as text, and arrays without elements, to the driver', () => {
    expect(arrayOf('json', ['{}'])).toEqual(['{}']);
    expect(arrayOf('int', [])).toEqual([]);
  });
});
