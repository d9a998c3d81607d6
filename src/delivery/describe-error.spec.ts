import { describe, expect, it } from '@jest/globals';
import { AddressRefused } from '../outbound/address-guard.js';
import { describeError, isOurTrouble } from './describe-error.js';

const failed = (code: string) => Object.assign(new Error('connect'), { code });

describe('an error of a call', () => {
  it.each(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM', 'ENETDOWN', 'EAI_AGAIN'])(
    'says nothing of the receiver: %s',
    (code) => {
      expect(isOurTrouble(failed(code))).toBe(true);
      expect(isOurTrouble(new Error('other side closed', { cause: failed(code) }))).toBe(true);
      expect(isOurTrouble(new AggregateError([failed(code), failed(code)]))).toBe(true);
    },
  );

  it('says nothing of the receiver where its address was refused', () => {
    expect(isOurTrouble(new AddressRefused('10.0.0.1'))).toBe(true);
  });

  it.each(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT'])(
    'is of the receiver: %s',
    (code) => {
      expect(isOurTrouble(failed(code))).toBe(false);
      expect(isOurTrouble(new AggregateError([failed('EADDRNOTAVAIL'), failed(code)]))).toBe(false);
      expect(isOurTrouble(new AggregateError([]))).toBe(false);
      expect(isOurTrouble(new Error('without a code'))).toBe(false);
    },
  );

  it('is told with its code', () => {
    expect(describeError(new AggregateError([failed('ECONNREFUSED'), failed('EMFILE')]))).toBe('ECONNREFUSED: connect');
    expect(describeError(new Error('without a code'))).toBe('without a code');
  });
});
