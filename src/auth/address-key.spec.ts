import { describe, expect, it } from 'vitest';
import { addressKey } from './address-key.js';

describe('the key of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1:4711', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2:ffff::', '2001:db8:1:2'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2'],
    ['[2001:db8:1:2::1]:4711', '2001:db8:1:2'],
    ['[2001:db8:1:2::1]', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4'],
  ])('%s is %s', (text, key) => {
    expect(addressKey(text)).toBe(key);
  });

  it.each([undefined, '', 'nonsense', '192.0.2', '1.2.3.4.5', 'x'.repeat(10_000), '[::1', '2001:db8::1::2'])(
    'is one for all that is no address: %j',
    (text) => {
      expect(addressKey(text)).toBe('unknown');
    },
  );
});
