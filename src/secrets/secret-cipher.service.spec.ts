import { describe, expect, it } from 'vitest';
import { keyRingOf, newEntry } from './key-ring.js';
import { SecretCipher, UnreadableSecret } from './secret-cipher.service.js';

const place = 'subscription.auth/0b6c3a3e-6c1f-4d3e-8d0a-2f1f6a6a9f10';
const [older, newer] = [newEntry(), newEntry()];
const idOf = (entry: string) => entry.split(':')[0]!;
const cipherWith = (...entries: string[]) => new SecretCipher(keyRingOf(entries, 'SECRET_KEYS'));

describe('a secret in the database', () => {
  it('is encrypted with the first key, differently each time, and read with any key of the ring', () => {
    const cipher = cipherWith(newer, older);
    const stored = [cipher.encrypt('Bearer é 😀', place), cipherWith(older).encrypt('Bearer é 😀', place)];
    expect(stored.map((each) => each.split(':', 2))).toEqual([newer, older].map((each) => ['enc', idOf(each)]));
    expect(cipher.encrypt('Bearer é 😀', place)).not.toBe(stored[0]);
    expect(stored.map((each) => cipher.decrypt(each, place))).toEqual(['Bearer é 😀', 'Bearer é 😀']);
  });

  it('cannot be read in another place, with another key of the same id, or when one bit was changed', () => {
    const cipher = cipherWith(newer);
    const stored = cipher.encrypt('secret', place);
    const bytes = Buffer.from(stored.split(':')[2]!, 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      const text = `enc:${idOf(newer)}:${changed.toString('base64url')}`;
      expect(() => cipher.decrypt(text, place)).toThrow(UnreadableSecret);
    }
    expect(() => cipher.decrypt(stored, place.replace('auth', 'credentials'))).toThrow(UnreadableSecret);
    const other = cipherWith(`${idOf(newer)}:${newEntry().split(':')[1]}`);
    expect(() => other.decrypt(stored, place)).toThrow(UnreadableSecret);
    for (const torn of [`enc:${idOf(newer)}:`, `enc:${idOf(newer)}`, stored.slice(0, 40)])
      expect(() => cipher.decrypt(torn, place)).toThrow(UnreadableSecret);
  });

  it('names the key that is missing, and nothing of what is stored', () => {
    const stored = cipherWith(older).encrypt('secret', place);
    const decrypt = () => cipherWith(newer).decrypt(stored, place);
    expect(decrypt).toThrow(`${place} is encrypted with the key ${idOf(older)}, which is not in the key ring`);
  });

  it('is plain text of before where it does not begin as an encrypted one, and empty where there is none', () => {
    for (const cipher of [cipherWith(), cipherWith(newer)]) {
      expect(cipher.decrypt('Bearer a:b', place)).toBe('Bearer a:b');
      expect(cipher.encrypt('', place)).toBe('');
    }
  });

  it('stays readable without keys, also one that looks encrypted', () => {
    const cipher = cipherWith();
    expect(cipher.encrypt('Bearer x', place)).toBe('Bearer x');
    const stored = cipher.encrypt('enc:stranger:AAAA', place);
    expect(stored).toMatch(/^enc::/);
    for (const reader of [cipher, cipherWith(newer)]) expect(reader.decrypt(stored, place)).toBe('enc:stranger:AAAA');
  });
});
