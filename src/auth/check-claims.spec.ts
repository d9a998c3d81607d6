import { describe, expect, it } from 'vitest';
import { checkTimes, readTimeClaims, type TimeClaims } from './check-claims.js';

const now = 1_800_000_000;
const rules = { expirySeconds: 3600, leewaySeconds: 0 };
const lenient = { expirySeconds: 3600, leewaySeconds: 60 };
const claims = (times: Partial<TimeClaims>): TimeClaims => ({ iat: now, exp: undefined, nbf: undefined, ...times });

describe('checking the times of a token that', () => {
  it.each([
    ['was issued now', claims({}), undefined],
    ['was issued a second short of the limit ago', claims({ iat: now - 3599 }), undefined],
    ['was issued as long ago as the limit', claims({ iat: now - 3600 }), 'jwt-expired'],
    [
      'was issued too long ago, although its exp is later',
      claims({ iat: now - 3660, exp: now + 43_200 }),
      'jwt-expired',
    ],
    ['was issued a minute ahead', claims({ iat: now + 60 }), undefined],
    ['was issued more than a minute ahead', claims({ iat: now + 61 }), 'jwt-immaturesignatureerror'],
    ['does not say when it was issued', claims({ iat: undefined }), 'jwt-missing-iat-claim'],
    ['ends in a second', claims({ exp: now + 1 }), undefined],
    ['ends now', claims({ exp: now }), 'jwt-expiredsignatureerror'],
    ['begins now', claims({ nbf: now }), undefined],
    ['begins in a second', claims({ nbf: now + 1 }), 'jwt-immaturesignatureerror'],
    ['begins later and is over', claims({ nbf: now + 1, exp: now - 1 }), 'jwt-immaturesignatureerror'],
    [
      'is over and does not say when it was issued',
      claims({ exp: now - 1, iat: undefined }),
      'jwt-expiredsignatureerror',
    ],
  ])('%s', (_, times, refusal) => {
    expect(checkTimes(times, now, rules)).toBe(refusal);
  });

  it('is off by no more than the leeway: it is accepted', () => {
    expect(checkTimes(claims({ iat: now - 3659 }), now, lenient)).toBeUndefined();
    expect(checkTimes(claims({ iat: now - 3660 }), now, lenient)).toBe('jwt-expired');
    expect(checkTimes(claims({ exp: now - 59 }), now, lenient)).toBeUndefined();
    expect(checkTimes(claims({ exp: now - 60 }), now, lenient)).toBe('jwt-expiredsignatureerror');
    expect(checkTimes(claims({ nbf: now + 60 }), now, lenient)).toBeUndefined();
    expect(checkTimes(claims({ nbf: now + 61 }), now, lenient)).toBe('jwt-immaturesignatureerror');
    expect(checkTimes(claims({ iat: now + 120 }), now, lenient)).toBeUndefined();
    expect(checkTimes(claims({ iat: now + 121 }), now, lenient)).toBe('jwt-immaturesignatureerror');
  });
});

describe('reading the times of a token', () => {
  it.each([
    ['whole numbers', { iat: 1, exp: 2, nbf: 3 }, { iat: 1, exp: 2, nbf: 3 }],
    ['decimals', { iat: 1.5 }, { iat: 1.5 }],
    ['texts', { iat: '1', exp: ' 2.5 ' }, { iat: 1, exp: 2.5 }],
    ['null as absent', { iat: null, exp: null }, {}],
    ['an iat that is none', { iat: 'yesterday' }, 'jwt-invalidissuedaterror'],
    ['an iat that is a list', { iat: [1] }, 'jwt-invalidissuedaterror'],
    ['an exp that is none', { iat: 1, exp: 'tomorrow' }, 'jwt-decode-error'],
    ['an nbf that is none', { iat: 1, nbf: {} }, 'jwt-decode-error'],
  ])('%s', (_, payload, expected) => {
    expect(readTimeClaims(payload)).toEqual(expected);
  });
});
