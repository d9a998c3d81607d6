import { describe, expect, it } from 'vitest';
import { AddressRefused, UrlRefused } from '../outbound/refused.js';
import { describeTrouble } from './describe-trouble.js';

const failed = (code: string) => Object.assign(new Error('failed'), { code });
const timedOut = () => new DOMException('The operation was aborted due to timeout', 'TimeoutError');

const troubles: [Error, string][] = [
  [failed('ECONNREFUSED'), 'cannot be reached: ECONNREFUSED'],
  [failed('ECONNRESET'), 'cannot be reached: ECONNRESET'],
  [failed('ENOTFOUND'), 'cannot be reached: ENOTFOUND'],
  [failed('UNREACHABLE_BY_PROXY'), 'cannot be reached: UNREACHABLE_BY_PROXY'],
  [failed('HPE_INVALID_CONSTANT'), 'cannot be reached: HPE_INVALID_CONSTANT'],
  [new Error('closed'), 'cannot be reached: closed'],
  [failed('ETIMEDOUT'), 'does not answer in time'],
  [timedOut(), 'does not answer in time'],
  [Object.assign(new Error('aborted', { cause: timedOut() }), { name: 'AbortError' }), 'does not answer in time'],
  [failed('CERT_HAS_EXPIRED'), 'fails at TLS: CERT_HAS_EXPIRED'],
  [failed('EPROTO'), 'fails at TLS: EPROTO'],
];

describe('the trouble with a callback', () => {
  it.each(troubles)('is told of public addresses: %s', (error, told) => {
    expect(describeTrouble(error, true)).toBe(told);
  });

  it('is one and the same of all others, so that nobody learns which ports are open there', () => {
    const told = new Set(troubles.map(([error]) => describeTrouble(error, false)));
    expect([...told]).toEqual(['cannot be reached, or gives no answer over HTTP']);
  });

  it('names the setting that would allow what is refused, and no address', () => {
    for (const isPublic of [true, false]) {
      const told = describeTrouble(new AddressRefused('10.1.2.3'), isPublic);
      expect(told).toMatch(/^is refused: .*CALLBACK_ALLOWED_NETWORKS$/);
      expect(told).not.toContain('10.1.2.3');
    }
    expect(describeTrouble(new UrlRefused('the port 22', 'CALLBACK_PORTS'), false)).toBe(
      'is refused: the port 22 is not one that callbacks may use; an operator can allow it with CALLBACK_PORTS',
    );
  });
});
