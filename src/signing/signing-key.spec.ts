import { describe, expect, it } from 'vitest';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { givenKey, InvalidSecret, newKey, secretPrefixes, SigningKey, signingSchemes } from './signing-key.js';

const seed = Buffer.from(Array.from({ length: 32 }, (_, nr) => nr));
const publicBytes = Buffer.from('A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=', 'base64');
const ed25519 = Buffer.concat([seed, publicBytes]).toString('base64');
const bytes = (count: number) => Buffer.alloc(count, 0xfb).toString('base64');

describe('a key that is made', () => {
  it('has 32 bytes at random and its prefix', () => {
    const { secret, publicKey } = newKey('v1');
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(publicKey).toBeNull();
    expect(newKey('v1').secret).not.toBe(secret);
  });

  it('has the seed and the public key, of scheme v1a', () => {
    const { secret, publicKey } = newKey('v1a');
    const whole = Buffer.from(secret.slice('whsk_'.length), 'base64');
    expect(whole).toHaveLength(64);
    expect(publicKey).toBe(`whpk_${whole.subarray(32).toString('base64')}`);
    expect(newKey('v1a').secret).not.toBe(secret);
  });

  it.each(signingSchemes)('can be given again, of scheme %s', (scheme) => {
    const made = newKey(scheme);
    expect(givenKey(scheme, made.secret)).toEqual(made);
    expect(givenKey(scheme, made.secret.slice(secretPrefixes[scheme].length))).toEqual(made);
  });
});

describe('a key that is given', () => {
  it.each([24, 25, 32, 63, 64])('may have %s bytes', (count) => {
    expect(givenKey('v1', bytes(count)).secret).toBe(`whsec_${bytes(count)}`);
  });

  it('has the public key of its seed', () => {
    expect(givenKey('v1a', ed25519).publicKey).toBe('whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=');
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
        return givenKey(scheme, secret);
      } catch (error) {
        return error;
      }
    };
    expect(reasonFor()).toBeInstanceOf(InvalidSecret);
    expect(String(reasonFor())).not.toContain(secret || 'nothing');
  });
});

describe('a signing key', () => {
  const key = new SigningKey('id', 'v1a', `whsk_${ed25519}`, null);

  it('shows no secret', () => {
    for (const text of [JSON.stringify(key), inspect(key, { showHidden: true }), JSON.stringify({ ...key })]) {
      expect(text).not.toContain(ed25519.slice(0, 20));
      expect(text).not.toContain('whsk_');
    }
  });

  it('is read once', () => {
    expect(key.object).toBe(key.object);
  });
});
