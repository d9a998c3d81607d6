import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { makeCertificate } from '../../test/support/certificates.js';
import { checkTls } from './check-tls.js';

const [described, named] = (['explicit', 'named'] as const).map((paramEncoding) =>
  generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding }),
);
const ofNamed = makeCertificate('named', { keys: named });
const ofDescribed = makeCertificate('described', { keys: described });

const check = (key: string, certificate = ofNamed.certificate) =>
  checkTls({ certificate, key }, Date.now()).map((param) => [param.name, param.code, param.reason]);
const unusable = (reason: string) => [['key', 'unusable-key', expect.stringContaining(reason)]];
const noKey = [['key', 'invalid-key', 'Not one private key in PEM.']];
const noCertificates = (name: string) => [[name, 'invalid-certificate', expect.stringContaining('in PEM')]];

const pem = (label: string, der: Buffer) =>
  `-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`;
const element = (tag: number, ...contents: Buffer[]) => {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, content.length]), content]);
};
const sequence = (...contents: Buffer[]) => element(0x30, ...contents);
const version = element(0x02, Buffer.from([0]));
const oid = (hex: string) => element(0x06, Buffer.from(hex, 'hex'));
const [ec, p256] = [oid('2a8648ce3d0201'), oid('2a8648ce3d030107')];
/** Of a key that is none, so that to parse it fails. */
const pkcs8 = (key: Buffer, ...algorithm: Buffer[]) =>
  pem('PRIVATE KEY', sequence(version, sequence(...algorithm), element(0x04, key)));
const ecKey = (curve: Buffer) => sequence(version, element(0x04), element(0xa0, curve));
const nothing = Buffer.alloc(0);

describe('the check of a TLS identity', () => {
  it.each([
    ['DSA', pkcs8(nothing, oid('2a8648ce380401'))],
    ['Diffie-Hellman', pkcs8(nothing, oid('2a864886f70d010301'))],
    ['SM2', pkcs8(nothing, oid('2a811ccf5501822d'))],
    ['DSA in its own form', pem('DSA PRIVATE KEY', sequence(version))],
  ])('refuses a key of %s without parsing it', (_, key) => {
    expect(check(key)).toEqual(unusable('it is of another kind'));
  });

  it.each([
    ['in PKCS#8', pkcs8(ecKey(p256), ec, sequence())],
    ['in PKCS#8 that names another', pkcs8(ecKey(sequence()), ec, p256)],
    ['in its own form', pem('EC PRIVATE KEY', ecKey(sequence()))],
  ])('refuses a key on a curve that it describes, %s, without parsing it', (_, key) => {
    expect(check(key)).toEqual(unusable('it is EC on a curve without a name'));
  });

  it.each([
    ['a public key', described!.publicKey.export({ type: 'spki', format: 'pem' }) + ofNamed.key],
    ['another key', ofNamed.key + ofNamed.key],
    ['a block that is not closed', `-----BEGIN PUBLIC KEY-----\n${ofNamed.key}`],
  ])('refuses a key that stands beside %s', (_, key) => {
    expect(check(key)).toEqual(noKey);
  });

  it('refuses a key that consists of other lines to OpenSSL', () => {
    const [begin, ...others] = pkcs8(nothing, oid('2a8648ce380401')).split('\n');
    const head = sequence(version, sequence(oid('2b6570'))).toString('base64');
    expect(check([begin, head, '', ...others].join('\n'))).toEqual(noKey);
  });

  it.each([
    ['PKCS#8', 'pkcs8'],
    ['its own form', 'sec1'],
  ] as const)('takes a key in %s, beside its certificate and its parameters', (_, type) => {
    const key = String(named!.privateKey.export({ type, format: 'pem' }));
    const text = `Bag Attributes\n${ofNamed.certificate}${pem('EC PARAMETERS', p256)}${key}`;
    expect(check(text.replaceAll('\n', '\r\n'))).toEqual([]);
  });

  it('takes a key of RSA in its own form', () => {
    const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { certificate } = makeCertificate('rsa', { keys });
    expect(check(String(keys.privateKey.export({ type: 'pkcs1', format: 'pem' })), certificate)).toEqual([]);
  });

  it('refuses certificates with a key on a curve that they describe', () => {
    const certificate = ofNamed.certificate + ofDescribed.certificate;
    expect(check(ofNamed.key, certificate)).toEqual(noCertificates('certificate'));
    const found = checkTls({ authority: certificate }, Date.now());
    expect(found).toEqual([expect.objectContaining({ name: 'authority', code: 'invalid-certificate' })]);
  });
});
