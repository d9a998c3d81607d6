import { describe, expect, it } from 'vitest';
import { keyRingOf, newEntry } from '../secrets/key-ring.js';
import { SecretCipher, UnreadableSecret } from '../secrets/secret-cipher.service.js';
import { hashPlace } from '../request-keys/hash-place.js';
import { secretsCarrier } from './carry-secrets.js';

const cipherWith = (...entries: string[]) => new SecretCipher(keyRingOf(entries, 'test'));
const [ofDirectory, ofSettings] = [newEntry(), newEntry()];
const [directory, settings] = [cipherWith(ofDirectory), cipherWith(ofSettings)];
const none = cipherWith();

const tableOf = (name: string, ...columns: string[]) => ({
  name,
  columns: columns.map((column) => ({ name: column, type: 'text' })),
  key: [],
  references: [],
});
const subscription = tableOf('subscription', 'credentials', 'id', 'callback_url', 'auth');
const place = 'subscription.auth/the-id';
const carriedAuth = (stored: string, from: readonly [SecretCipher, SecretCipher], to: SecretCipher) =>
  secretsCarrier(subscription, from, to)([null, 'the-id', 'enc:a:url', stored]);

describe('a secret that is moved', () => {
  it.each([
    ['the key of the directory', directory],
    ['a key of the settings', settings],
    ['no key', none],
  ])('is encrypted with the first key of the settings, wherever it was encrypted with %s', (_, before) => {
    const [credentials, id, url, auth] = carriedAuth(
      before.encrypt('Bearer x', place),
      [directory, settings],
      settings,
    );
    expect([credentials, id, url]).toEqual([null, 'the-id', 'enc:a:url']);
    expect(auth).toMatch(new RegExp(`^enc:${settings.keyId!}:`));
    expect(settings.decrypt(auth!, place)).toBe('Bearer x');
  });

  it('is read with the key that encrypted it where two have the same id', () => {
    const same = cipherWith(`${directory.keyId!}:${ofSettings.split(':')[1]!}`);
    for (const before of [directory, same]) {
      const auth = carriedAuth(before.encrypt('Bearer x', place), [directory, same], same)[3];
      expect(same.decrypt(auth!, place)).toBe('Bearer x');
    }
  });

  it('can be read where the settings have no key', () => {
    expect(carriedAuth(directory.encrypt('Bearer x', place), [directory, none], none)[3]).toBe('Bearer x');
    expect(carriedAuth('', [directory, none], none)[3]).toBe('');
  });

  it('is not moved where no key reads it', () => {
    const stored = cipherWith(newEntry()).encrypt('Bearer x', place);
    expect(() => carriedAuth(stored, [directory, settings], settings)).toThrow(UnreadableSecret);
  });
});

describe('the hash of a request that is moved', () => {
  const onceKey = tableOf('once_key', 'application', 'operation', 'key', 'request_hash');
  const names = { application: 'a', operation: 'application', key: 'k' };
  const carriedHash = (stored: string | null) =>
    secretsCarrier(onceKey, [directory, settings], settings)([...Object.values(names), stored])[3];

  it('is encrypted anew where it is of a request with a secret', () => {
    const hash = carriedHash(directory.encrypt('the hash', hashPlace(names)));
    expect(hash).toMatch(new RegExp(`^enc:${settings.keyId!}:`));
    expect(settings.decrypt(hash!, hashPlace(names))).toBe('the hash');
  });

  it('stays as it is where it is readable, or a key of before has encrypted it', () => {
    const ofBefore = cipherWith(newEntry()).encrypt('the hash', hashPlace(names));
    for (const stored of ['the hash', null, ofBefore]) expect(carriedHash(stored)).toBe(stored);
  });
});
