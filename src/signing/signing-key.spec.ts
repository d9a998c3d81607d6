import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { InvalidSecret, newSecret, normalSecret, secretPrefixes, SigningKey, signingSchemes } from './signing-key.js';

const seed = Buffer.from(Array.from({ length: 32 }, (_, nr) => nr));
const publicBytes = Buffer.from('A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=', 'base64');
const ed25519 = Buffer.concat([seed, publicBytes]).toString('base64');
const bytes = (count: number) => Buffer.alloc(count, 0xfb).toString('base64');

const key = (scheme: 'v1' | 'v1a', secret: string) => new SigningKey('id', scheme, secret, 0, null);

describe('a secret that is made', () => {
  it('has 32 bytes at random and its prefix', () => {
    const secret = newSecret('v1');
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(newSecret('v1')).not.toBe(secret);
  });

  it('has the seed and the public key, of scheme v1a', () => {
    expect(Buffer.from(newSecret('v1a').slice('whsk_'.length), 'base64')).toHaveLength(64);
    expect(newSecret('v1a')).not.toBe(newSecret('v1a'));
  });

  it.each(signingSchemes)('can be given again, of scheme %s', (scheme) => {
    const secret = newSecret(scheme);
    expect(normalSecret(scheme, secret)).toBe(secret);
    expect(normalSecret(scheme, secret.slice(secretPrefixes[scheme].length))).toBe(secret);
  });
});

describe('a secret that is given', () => {
  it.each([24, 25, 32, 63, 64])('may have %s bytes', (count) => {
    expect(normalSecret('v1', bytes(count))).toBe(`whsec_${bytes(count)}`);
  });

  it.each<[string, 'v1' | 'v1a', string]>([
    ['nothing', 'v1', ''],
    ['only the prefix', 'v1', 'whsec_'],
    ['too few bytes', 'v1', bytes(23)],
    ['too many bytes', 'v1', bytes(65)],
    ['base64 without its padding', 'v1', bytes(32).replaceAll('=', '')],
    ['base64url', 'v1', Buffer.alloc(24, 0xfb).toString('base64url')],
    ['another alphabet', 'v1', `${bytes(24)}!!!!`],
    ['a space at its end', 'v1', `${bytes(24)} `],
    ['the prefix of the other scheme', 'v1', `whsk_${ed25519}`],
    ['the prefix of a public key', 'v1a', `whpk_${publicBytes.toString('base64')}`],
    ['the seed alone', 'v1a', `whsk_${seed.toString('base64')}`],
    ['the public key of another seed', 'v1a', Buffer.concat([seed, randomBytes(32)]).toString('base64')],
  ])('is refused if it has %s, and not repeated', (_, scheme, secret) => {
    const reasonFor = () => {
      try {
        return normalSecret(scheme, secret);
      } catch (error) {
        return error;
      }
    };
    expect(reasonFor()).toBeInstanceOf(InvalidSecret);
    expect(String(reasonFor())).not.toContain(secret || 'nothing');
  });
});

describe('a signing key', () => {
  it('shows its public key only, and no secret', () => {
    expect(key('v1', bytes(32)).publicKey).toBeNull();
    const shown = key('v1a', `whsk_${ed25519}`);
    expect(shown.publicKey).toBe('whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=');
    for (const text of [JSON.stringify(shown), inspect(shown, { showHidden: true })]) {
      expect(text).not.toContain(ed25519.slice(0, 20));
      expect(text).not.toContain('whsk_');
    }
  });

  it('is read once', () => {
    const once = key('v1', `whsec_${bytes(24)}`);
    expect(once.object).toBe(once.object);
  });

  it('has the same secret as another one of its scheme only', () => {
    const one = key('v1', `whsec_${bytes(24)}`);
    expect(one.hasSameSecretAs(key('v1', `whsec_${bytes(24)}`))).toBe(true);
    expect(one.hasSameSecretAs(key('v1', `whsec_${bytes(25)}`))).toBe(false);
    expect(one.hasSameSecretAs(key('v1a', `whsk_${ed25519}`))).toBe(false);
  });
});
