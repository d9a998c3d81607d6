import { describe, expect, it } from 'vitest';
import { AddressRefused, UrlRefused } from './refused.js';
import { describeError, isOurTrouble, isTroubleOfMachine } from './describe-error.js';

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

  it.each([new AddressRefused('10.0.0.1'), new UrlRefused('the port 22', 'CALLBACK_PORTS')])(
    'says nothing of the receiver where it was not asked: %s',
    (error) => {
      expect(isOurTrouble(error)).toBe(true);
    },
  );

  it.each(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'EHOSTUNREACH', 'ETIMEDOUT', 'UNREACHABLE_BY_PROXY'])(
    'is of the receiver: %s',
    (code) => {
      expect(isOurTrouble(failed(code))).toBe(false);
      expect(isOurTrouble(new AggregateError([failed('EADDRNOTAVAIL'), failed(code)]))).toBe(false);
      expect(isOurTrouble(new AggregateError([]))).toBe(false);
      expect(isOurTrouble(new Error('without a code'))).toBe(false);
    },
  );

  it('is of this machine where that lacks what it takes to reach any address of the receiver', () => {
    for (const code of ['EMFILE', 'LOOKUP_BUSY']) expect(isTroubleOfMachine(failed(code))).toBe(true);
    expect(isTroubleOfMachine(new AggregateError([failed('EADDRNOTAVAIL'), failed('ENETDOWN')]))).toBe(true);
    expect(isTroubleOfMachine(new AggregateError([failed('EADDRNOTAVAIL'), failed('ECONNREFUSED')]))).toBe(false);
    for (const code of ['EAI_AGAIN', 'ADDRESS_REFUSED', 'URL_REFUSED'])
      expect(isTroubleOfMachine(failed(code))).toBe(false);
  });

  it('is told with its code', () => {
    expect(describeError(new AggregateError([failed('ECONNREFUSED'), failed('EMFILE')]))).toBe('ECONNREFUSED: connect');
    expect(describeError(new Error('without a code'))).toBe('without a code');
  });
});
