import { expect, it } from 'vitest';
import { isFromHere } from './from-here.js';

const from = (remoteAddress: string | undefined, headers: Record<string, string> = {}) =>
  isFromHere({ headers, raw: { socket: { remoteAddress } } } as Parameters<typeof isFromHere>[0]);

it.each(['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1'])('a browser at %s is on this machine', (address) => {
  expect(from(address)).toBe(true);
});

it.each(['10.0.0.1', '192.168.1.2', '::ffff:10.0.0.1', 'fe80::1', '2001:db8::1', '', undefined])(
  'one at %s is not',
  (address) => {
    expect(from(address)).toBe(false);
  },
);

it.each(['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'via'])(
  'one behind a proxy, by %s, may be anywhere',
  (name) => {
    expect(from('127.0.0.1', { [name]: '127.0.0.1' })).toBe(false);
  },
);
