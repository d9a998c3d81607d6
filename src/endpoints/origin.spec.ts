import { describe, expect, it } from 'vitest';
import { addressOf, endpointsMeant, endpointsOf, originOf } from './origin.js';

const tls = (id: string) => ({ tls: { id } });

describe('the endpoints that a callback leads to', () => {
  it('are its origin and its URL, which are never the same', () => {
    expect(endpointsOf({ callbackUrl: 'https://a.example/hook', credentials: {} })).toEqual([
      'https://a.example',
      'https://a.example/hook',
    ]);
    expect(endpointsOf({ callbackUrl: 'https://a.example', credentials: {} })).toEqual([
      'https://a.example',
      'https://a.example/',
    ]);
  });

  it('are others for each TLS identity, but for the origin', () => {
    const callbackUrl = 'https://a.example/hook';
    const own = [{}, tls('identity-one-long'), tls('Other-identity'), tls('identity-one-long')].map((credentials) =>
      endpointsOf({ callbackUrl, credentials }),
    );
    expect(own.map(([origin]) => origin)).toEqual(Array(4).fill('https://a.example'));
    expect(own.map(([, address]) => address)).toEqual([
      callbackUrl,
      `${callbackUrl} with TLS identity identity-o`,
      `${callbackUrl} with TLS identity Other-iden`,
      `${callbackUrl} with TLS identity identity-o`,
    ]);
  });

  it('are the same for a URL that is spelt in another way', () => {
    const spellings = [
      'https://a.example/hook/%C3%A9?a=b',
      'HTTPS://A.example/hook/%C3%A9?a=b',
      'https://a.example:443/hook/é?a=b',
      'https://a.example/x/../hook/é?a=b#part',
    ];
    for (const credentials of [{}, tls('identity')]) {
      const endpoints = spellings.map((callbackUrl) => endpointsOf({ callbackUrl, credentials }).join(' '));
      expect(new Set(endpoints).size).toBe(1);
    }
    const others = [
      'https://a.example/hook',
      'https://a.example/Hook',
      'https://a.example/hook/',
      'http://a.example/hook',
    ];
    expect(new Set(others.map((callbackUrl) => addressOf({ callbackUrl, credentials: {} }))).size).toBe(4);
  });

  it('have addresses that fit an index, also where letters become escapes, and are the same for each spelling', () => {
    const beginning = 'https://a.example/';
    const own = (callbackUrl: string) => addressOf({ callbackUrl, credentials: {} });
    const long = `${beginning}${'é'.repeat(1000)}`;
    const address = own(long);
    expect(address).toMatch(/^https:\/\/a\.example\/(%C3%A9){100}[!-~]+ and more [\w-]{43}$/);
    expect(address.length).toBeLessThanOrEqual(2048);
    expect(own(long.replace('https://a', 'HTTPS://A'))).toBe(address);
    expect(own(`${long}#part`)).toBe(address);
    expect(own(new URL(long).href)).toBe(address);
    expect(own(`${long}e`)).not.toBe(address);
    expect(originOf(address)).toBe('https://a.example');
    const longest = `${beginning}${'e'.repeat(2048 - beginning.length)}`;
    expect(own(longest)).toBe(longest);
    const short = `${beginning}${'é'.repeat(300)}`;
    expect(own(short)).toBe(new URL(short).href);
  });

  it('have the origin that their address tells', () => {
    for (const callbackUrl of ['https://a.example:8443', 'https://a.example:8443/hook?a=b'])
      expect(originOf(addressOf({ callbackUrl, credentials: tls('identity') }))).toBe('https://a.example:8443');
  });
});

describe('the endpoints that are meant', () => {
  const plain = (callbackUrl: string) => ({ callbackUrl, credentials: {} });
  const own = (callbackUrl: string, id: string) => ({ callbackUrl, credentials: tls(id) });
  const meant = (given: string, ...callbacks: Parameters<typeof endpointsMeant>[1]) => {
    const addresses = endpointsMeant(given, callbacks);
    return addresses && [...addresses];
  };

  it('are the one that reads like what is given', () => {
    const callbacks = [own('https://a.example/hook', 'one'), plain('https://a.example')];
    const addresses = ['https://a.example', 'https://a.example/', 'https://a.example/hook with TLS identity one'];
    for (const address of addresses) expect(meant(address, ...callbacks)).toEqual([address]);
  });

  it('are that of the callback URL in another spelling, and with each identity where it has no other', () => {
    const [url, given] = ['https://a.example/hook', 'HTTPS://A.example/hook#part'];
    const others = [own(`${url}/`, 'three'), plain('https://a.example/other')];
    const both = [own(url, 'one'), own(given, 'two'), own(url, 'one')];
    const identities = ['one', 'two'].map((id) => `${url} with TLS identity ${id}`);
    for (const each of [url, given]) {
      expect(meant(each, ...both, ...others)).toEqual(identities);
      expect(meant(each, ...both, plain(given), ...others)).toEqual([url]);
      expect(meant(each, ...others)).toBeUndefined();
    }
  });
});
