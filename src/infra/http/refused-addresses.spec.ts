import { describe, expect, it } from '@jest/globals';
import type { LookupOptions } from 'node:dns';
import { RefusedAddresses } from './refused-addresses.js';

const publicOnly = new RefusedAddresses({ CALLBACK_NETWORKS: 'public', CALLBACK_ALLOWED_NETWORKS: [] });

const lookUp = (addresses: RefusedAddresses, host: string, options: LookupOptions) =>
  new Promise<unknown>((resolve) => {
    addresses.lookup(host, options, (error, address) => resolve(error ?? address));
  });

describe('addresses callbacks may not use', () => {
  it.each([
    '127.0.0.1',
    '169.254.169.254',
    '100.100.0.1',
    '192.0.0.8',
    '0.0.0.0',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    'fd00::1',
    'fe80::1',
    '2002:7f00:1::',
    '64:ff9b::7f00:1',
    'fec0::1',
    '2001:0:7f00:1::',
    '3fff::1',
    'ff02::1',
  ])('%s', (address) => {
    expect(publicOnly.isRefused(address)).toBe(true);
  });

  it.each(['8.8.8.8', '172.32.0.1', '::ffff:8.8.8.8', '2001:4860:4860::8888'])('but %s', (address) => {
    expect(publicOnly.isRefused(address)).toBe(false);
  });

  it.each(['2130706433', '0x7f.1', '0177.0.0.1', '127.1', '１２７.0.0.1', '[::1]', '[::ffff:127.0.0.1]'])(
    'finds the address that the host %s of a URL stands for',
    (host) => {
      expect(publicOnly.isRefusedHost(new URL(`http://${host}/`).hostname)).toBe(true);
    },
  );

  it('leaves names to the look-up', () => {
    expect(publicOnly.isRefusedHost('localhost')).toBe(false);
  });
});

describe('settings', () => {
  it('lets everything pass by default', () => {
    const any = new RefusedAddresses({ CALLBACK_NETWORKS: 'any', CALLBACK_ALLOWED_NETWORKS: [] });
    expect(any.isRefused('127.0.0.1')).toBe(false);
  });

  it('lets ranges and single addresses pass that are allowed although they are not public', () => {
    const some = new RefusedAddresses({
      CALLBACK_NETWORKS: 'public',
      CALLBACK_ALLOWED_NETWORKS: ['10.1.0.0/16', 'fd00:1::/32', '192.168.1.1'],
    });
    expect(['10.1.2.3', 'fd00:1::5', '192.168.1.1'].map((address) => some.isRefused(address))).toEqual([
      false,
      false,
      false,
    ]);
    expect(['10.2.2.3', 'fd00:2::5', '192.168.1.2'].map((address) => some.isRefused(address))).toEqual([
      true,
      true,
      true,
    ]);
  });
});

describe('looking up a name', () => {
  it('fails when it has only addresses that are refused', async () => {
    expect(await lookUp(publicOnly, 'localhost', { all: true })).toMatchObject({ code: 'ADDRESS_REFUSED' });
    expect(await lookUp(publicOnly, 'localhost', {})).toMatchObject({ code: 'ADDRESS_REFUSED' });
  });

  it('gives only the addresses that may be used', async () => {
    const four = new RefusedAddresses({ CALLBACK_NETWORKS: 'public', CALLBACK_ALLOWED_NETWORKS: ['127.0.0.0/8'] });
    expect(await lookUp(four, 'localhost', { all: true })).toEqual([{ address: '127.0.0.1', family: 4 }]);
    expect(await lookUp(four, 'localhost', {})).toBe('127.0.0.1');
  });

  it('passes on that there is no such name', async () => {
    expect(await lookUp(publicOnly, 'does-not-exist.invalid', { all: true })).toMatchObject({ syscall: 'getaddrinfo' });
  });
});
