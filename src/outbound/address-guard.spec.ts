import { describe, expect, it } from 'vitest';
import { lookup, type LookupOptions } from 'node:dns';
import { readSettings } from '../config/settings.js';
import { AddressGuard } from './address-guard.js';

const guardWith = (settings: Record<string, string>) => new AddressGuard(readSettings(settings));

const publicOnly = guardWith({ CALLBACK_NETWORKS: 'public' });

const lookUp = (guard: AddressGuard, host: string, options: LookupOptions) =>
  new Promise<unknown>((resolve) => {
    guard.guarded(lookup)(host, options, (error, address) => resolve(error ?? address));
  });

const refusedOf = (guard: AddressGuard, addresses: string[]) => addresses.filter((address) => guard.isRefused(address));

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
    '168.63.129.16',
    '::1',
    '::',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::808:808',
    '64:ff9b:1::1',
    '100::1',
    '2001:0:7f00:1::',
    '2001:db8::1',
    '2002:7f00:1::',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'fd00::1',
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    'no address',
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

describe('the networks callbacks may use', () => {
  it('are the public ones wherever there is a database of its own', () => {
    const guard = guardWith({ DATABASE_URL: 'postgres://db.example/heraut' });
    expect(refusedOf(guard, ['127.0.0.1', '10.0.0.1', '8.8.8.8'])).toEqual(['127.0.0.1', '10.0.0.1']);
    expect(guard.isLoopbackAllowed).toBe(false);
  });

  it('are those and loopback on the embedded database, unless somebody said otherwise', () => {
    const guard = guardWith({});
    expect(
      refusedOf(guard, ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '10.0.0.1', '::', 'fd00::1']),
    ).toEqual(['10.0.0.1', '::', 'fd00::1']);
    expect(guard.isLoopbackAllowed).toBe(true);
    expect(publicOnly.isLoopbackAllowed).toBe(false);
  });

  it('are with `any` all but those of this link and of the metadata of clouds, in every form', () => {
    const any = guardWith({ CALLBACK_NETWORKS: 'any' });
    expect(refusedOf(any, ['127.0.0.1', '10.0.0.1', '::1', 'fd00::1', '64:ff9b::7f00:1', '8.8.8.8'])).toEqual([]);
    const closed = [
      '169.254.169.254',
      '::ffff:169.254.169.254',
      '::169.254.169.254',
      '::ffff:0:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::a9fe:a9fe',
      '64:ff9b:1:a9fe:a9:fe00::',
      '2002:a9fe:a9fe::1',
      '2001:0:a9fe:a9fe::1',
      '2001:0:808:808:0:1:5601:5601',
      'fe80::1',
      'fd00:ec2::254',
      '100.100.100.200',
      '168.63.129.16',
    ];
    expect(refusedOf(any, closed)).toEqual(closed);
  });

  it('are also those that are allowed although they are not public', () => {
    const some = guardWith({
      CALLBACK_NETWORKS: 'public',
      CALLBACK_ALLOWED_NETWORKS: '10.1.0.0/16,fd00:1::/32,192.168.1.1',
    });
    expect(refusedOf(some, ['10.1.2.3', '::ffff:10.1.2.3', 'fd00:1::5', '192.168.1.1'])).toEqual([]);
    const others = ['10.2.2.3', 'fd00:2::5', '192.168.1.2'];
    expect(refusedOf(some, others)).toEqual(others);
  });

  it('are not what a range that is allowed carries inside', () => {
    const nat64 = guardWith({ CALLBACK_NETWORKS: 'public', CALLBACK_ALLOWED_NETWORKS: '64:ff9b::/96' });
    expect(refusedOf(nat64, ['64:ff9b::808:808', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe'])).toEqual([
      '64:ff9b::7f00:1',
      '64:ff9b::a9fe:a9fe',
    ]);
  });

  it.each(['public', 'any'])('are link-local and metadata with `%s` only where they are named exactly', (networks) => {
    const addresses = ['169.254.169.254', '169.254.10.1', 'fe80::1', 'fd00:ec2::254', '100.100.100.200'];
    const guarded = (allowed: string) =>
      refusedOf(guardWith({ CALLBACK_NETWORKS: networks, CALLBACK_ALLOWED_NETWORKS: allowed }), addresses);
    expect(guarded('0.0.0.0/0,::/0,169.0.0.0/8,fe00::/8,fd00::/8,100.64.0.0/10')).toEqual(addresses);
    expect(guarded('169.254.10.0/24,fe80::/64')).toEqual(['169.254.169.254', 'fd00:ec2::254', '100.100.100.200']);
    expect(guarded('169.254.169.254,100.100.100.200')).toEqual(['169.254.10.1', 'fe80::1', 'fd00:ec2::254']);
  });

  it('tells what anybody can call from what only this server can', () => {
    const any = guardWith({ CALLBACK_NETWORKS: 'any' });
    expect(['8.8.8.8', '2001:4860:4860::8888'].filter((address) => !any.isPublic(address))).toEqual([]);
    const own = ['10.0.0.1', '127.0.0.1', '::1', '::ffff:10.0.0.1', '168.63.129.16', 'no address'];
    expect(own.filter((address) => any.isPublic(address))).toEqual([]);
  });
});

describe('looking up a name', () => {
  it('fails when it has only addresses that are refused, and does not say which', async () => {
    expect(await lookUp(publicOnly, 'localhost', { all: true })).toMatchObject({ code: 'ADDRESS_REFUSED' });
    const error = (await lookUp(publicOnly, 'localhost', {})) as Error & { address: string };
    expect(error.message).toMatch(/CALLBACK_ALLOWED_NETWORKS$/);
    expect(error.message).not.toContain(error.address);
  });

  it('gives only the addresses that may be used', async () => {
    const four = guardWith({ CALLBACK_NETWORKS: 'public', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8' });
    expect(await lookUp(four, 'localhost', { all: true })).toEqual([{ address: '127.0.0.1', family: 4 }]);
    expect(await lookUp(four, 'localhost', {})).toBe('127.0.0.1');
  });

  it('passes on that there is no such name', async () => {
    expect(await lookUp(publicOnly, 'does-not-exist.invalid', { all: true })).toMatchObject({ syscall: 'getaddrinfo' });
  });
});
