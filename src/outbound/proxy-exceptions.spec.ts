import { describe, expect, it } from 'vitest';
import { ProxyExceptions } from './proxy-exceptions.js';

describe('the exceptions from the egress proxy', () => {
  const exceptions = new ProxyExceptions([
    'Internal.example',
    '.dotted.example',
    '*.starred.example',
    '10.0.0.0/8',
    '::5',
  ]);

  it.each(['internal.example', 'a.b.internal.example', 'INTERNAL.example.', 'dotted.example', 'a.starred.example'])(
    'have the name %s',
    (name) => {
      expect(exceptions.hasName(name)).toBe(true);
    },
  );

  it.each(['example', 'notinternal.example', 'internal.example.org', '10.0.0.1'])('have no name %s', (name) => {
    expect(exceptions.hasName(name)).toBe(false);
  });

  it('have the addresses of ranges, and always those of this machine', () => {
    const addresses = ['10.1.2.3', '::5', '127.0.0.1', '::1', '11.0.0.1', '::6'];
    expect(addresses.filter((address) => exceptions.hasAddress(address))).toEqual(addresses.slice(0, 4));
    expect(new ProxyExceptions([]).hasAddress('127.0.0.1')).toBe(true);
  });
});
