import { describe, expect, it } from 'vitest';
import { ValidationProblem } from '../infra/http/problem.js';
import { readDeliverAfter } from './request-terms.js';

const now = Date.UTC(2026, 10, 20, 12);

describe('Deliver-After', () => {
  it('is null without the header', () => {
    expect(readDeliverAfter(undefined, now)).toBeNull();
  });

  it.each([
    ['2026-11-20T12:00:01Z', 1000],
    ['2026-11-20t12:00:01z', 1000],
    [' 2026-11-20T13:00:01+01:00 ', 1000],
    ['2026-11-20T12:00:00.25Z', 250],
    ['2026-11-20T12:00:00-00:00', 0],
    ['2027-11-20T12:00:00Z', 365 * 86_400_000],
    ['2020-02-29T00:00:00Z', Date.UTC(2020, 1, 29) - now],
  ])('%j is a moment', (text, msAhead) => {
    expect(readDeliverAfter(text, now)).toBe(now + msAhead);
  });

  it.each([
    '',
    '2026-11-20',
    '2026-11-20T12:00Z',
    '2026-11-20 12:00:00Z',
    '2026-11-20T12:00:00',
    '2026-11-20T12:00:00+01',
    '2026-11-31T12:00:00Z',
    '2026-11-20T24:00:00Z',
    '2027-11-22T12:00:00Z',
    '60',
    'Fri, 20 Nov 2026 12:00:00 GMT',
  ])('%j is refused', (text) => {
    expect(() => readDeliverAfter(text, now)).toThrow(ValidationProblem);
  });

  it('is refused when it comes twice', () => {
    expect(() => readDeliverAfter(['2026-11-20T12:00:01Z', '2026-11-20T12:00:02Z'], now)).toThrow(ValidationProblem);
  });
});
