import { describe, expect, it } from 'vitest';
import { entriesOf, keyRingOf, KeyRingRefused, newEntry } from './key-ring.js';

const key = Buffer.alloc(32, 0xfb);

describe('a key ring', () => {
  it('has its keys in their order, in base64 or base64url, padded or not', () => {
    const ring = keyRingOf([`new:${key.toString('base64')}`, `old_1-b:${key.toString('base64url')}`], 'SECRET_KEYS');
    expect([...ring.keys()]).toEqual(['new', 'old_1-b']);
    expect([...ring.values()].map((each) => each.export())).toEqual([key, key]);
  });

  it('is read from lines, or between commas', () => {
    expect(entriesOf('\na:1\r\nb:2, c:3,\n')).toEqual(['a:1', 'b:2', 'c:3']);
  });

  it('takes what it makes itself', () => {
    expect(keyRingOf([newEntry(), newEntry()], 'file').size).toBe(2);
  });

  it.each([
    ['without an id', key.toString('base64')],
    ['too short', `a:${key.subarray(1).toString('base64')}`],
    ['too long', `a:${Buffer.alloc(33, 1).toString('base64')}`],
    ['with a space in its id', `a b:${key.toString('base64')}`],
    ['in hex', `a:${key.toString('hex')}`],
  ])('refuses an entry %s, by its position and without showing it', (_, entry) => {
    const read = () => keyRingOf([newEntry(), entry], 'SECRET_KEYS');
    expect(read).toThrow(new KeyRingRefused('SECRET_KEYS: entry 2 is not `id:base64 of 32 bytes`.'));
  });

  it('refuses an id that occurs twice', () => {
    expect(() => keyRingOf([`a:${key.toString('base64')}`, `a:${key.toString('base64')}`], 'file')).toThrow(
      'file: the id a occurs twice.',
    );
  });
});
