import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '../../test/support/certificates.js';
import { longKey } from '../../test/support/long-key.js';
import { whyKeyUnusable, whyUnusable } from './usable-key.js';

const ofCurve = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey;
const ofRsa = (bits: number) => createPrivateKey(longKey(bits));

describe('the key of a client certificate', () => {
  it.each<[string, KeyObject]>([
    ['RSA, 2048 bits', ofRsa(2048)],
    ['RSA, 4096 bits', ofRsa(4096)],
    ['P-256', ofCurve('P-256')],
    ['P-384', ofCurve('P-384')],
    ['P-521', ofCurve('P-521')],
    ['Ed25519', generateKeyPairSync('ed25519').privateKey],
    ['Ed448', generateKeyPairSync('ed448').privateKey],
  ])('may be %s', (_, key) => {
    expect(whyUnusable(key)).toBeUndefined();
  });

  it.each<[string, KeyObject, string]>([
    ['RSA above 4096 bits', ofRsa(4112), 'it is RSA of 4112 bits, and may be RSA up to 4096 bits'],
    ['RSA of 32768 bits', ofRsa(32_768), 'it is RSA of 32768 bits'],
    ['on another curve', ofCurve('secp256k1'), 'it is EC on the curve secp256k1'],
    ['of no use for signatures', generateKeyPairSync('x25519').privateKey, 'it is x25519'],
  ])('may not be %s', (_, key, reason) => {
    expect(whyUnusable(key)).toContain(reason);
  });

  it('that was stored before is judged alike, also where TLS might read what is not read here', () => {
    const { certificate, key } = makeCertificate('named');
    expect(whyKeyUnusable({ certificate, key, authority: certificate })).toBeUndefined();
    const long = longKey(8192);
    expect(whyKeyUnusable({ certificate, key: long })).toContain('it is RSA of 8192 bits');
    const { publicKey } = generateKeyPairSync('ed25519');
    const besidePublic = long + String(publicKey.export({ type: 'spki', format: 'pem' }));
    for (const text of ['x', besidePublic, key + key])
      expect(whyKeyUnusable({ certificate, key: text })).toContain('it is not one private key in PEM');
    expect(whyKeyUnusable({ authority: 'x' })).toContain('a certificate cannot be read');
    expect(whyKeyUnusable({ certificate: `-----BEGIN X-----\n${certificate}`, key })).toContain('cannot be read');
  });

  it('is not looked at alone: certificates that were stored before may be as slow to read', () => {
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' });
    const { certificate, key } = makeCertificate('described', { keys });
    expect(whyKeyUnusable({ authority: certificate })).toContain('a key on a curve without a name');
    expect(whyKeyUnusable({ certificate, key })).toContain('a key on a curve without a name');
  });
});
