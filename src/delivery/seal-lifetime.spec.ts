import { describe, expect, it } from 'vitest';
import { sealMsOf } from './seal-lifetime.js';

describe('how long an outcome is remembered', () => {
  it.each([
    ['six hours when nothing is said', {}, 21_600_000],
    ['as said of the owner', { owner: 60, '*': 120 }, 60_000],
    ['as said of everybody else', { other: 60, '*': 120 }, 120_000],
    ['six hours when only others are named', { other: 60 }, 21_600_000],
  ])('is %s', (_what, seconds: Record<string, number>, expected) => {
    expect(sealMsOf('owner', seconds)).toBe(expected);
  });

  it('is found for an owner whose name every object knows', () => {
    expect(sealMsOf('constructor', {})).toBe(21_600_000);
    expect(sealMsOf('constructor', { constructor: 60 })).toBe(60_000);
  });
});
