import { generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';
import { isIP } from 'node:net';

/** A certificate with its key, in PEM. */
export interface Certificate {
  certificate: string;
  key: string;
}

export interface CertificateOptions {
  /** Its authority; none: it signs itself, and may sign others. */
  by?: Certificate & { name: string; keyObject: KeyObject };
  /** Names and IPv4 addresses of a server. */
  hosts?: string[];
  validFrom?: Date;
  validTo?: Date;
  /** In place of a new one on P-256, which it signs with. */
  keys?: { publicKey: KeyObject; privateKey: KeyObject };
}

type Made = Certificate & { name: string; keyObject: KeyObject };

/** X.509 v3 by hand (RFC 5280), as neither Node nor a bare system makes certificates. ECDSA on P-256 with SHA-256. */
export function makeCertificate(name: string, options: CertificateOptions = {}): Made {
  const { by, hosts = [] } = options;
  const validFrom = options.validFrom ?? new Date(Date.now() - 86_400_000);
  const validTo = options.validTo ?? new Date(Date.now() + 86_400_000);
  const { privateKey, publicKey } = options.keys ?? generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(oid('2a8648ce3d040302')); // ecdsa-with-SHA256
  const extensions = [
    ...(by ? [] : [sequence(oid('551d13'), boolean(true), octets(sequence(boolean(true))))]), // basicConstraints: CA
    ...(hosts.length > 0 ? [sequence(oid('551d11'), octets(sequence(...hosts.map(generalName))))] : []), // subjectAltName
  ];
  const toBeSigned = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), // version 3
    tagged(0x02, Buffer.concat([Buffer.from([1]), randomBytes(15)])), // serial number
    algorithm,
    commonName(by?.name ?? name),
    sequence(time(validFrom), time(validTo)),
    commonName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    ...(extensions.length > 0 ? [tagged(0xa3, sequence(...extensions))] : []),
  );
  const signature = sign('sha256', toBeSigned, by?.keyObject ?? privateKey);
  const der = sequence(toBeSigned, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const base64 = der.toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd();
  return {
    name,
    certificate: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    keyObject: privateKey,
  };
}

function tagged(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...contents: Buffer[]): Buffer => tagged(0x30, ...contents);
const oid = (hex: string): Buffer => tagged(0x06, Buffer.from(hex, 'hex'));
const boolean = (value: boolean): Buffer => tagged(0x01, Buffer.from([value ? 0xff : 0]));
const octets = (content: Buffer): Buffer => tagged(0x04, content);
const commonName = (name: string): Buffer =>
  sequence(tagged(0x31, sequence(oid('550403'), tagged(0x0c, Buffer.from(name)))));
/** UTCTime; of years 1950 to 2049. */
const time = (at: Date): Buffer =>
  tagged(0x17, Buffer.from(`${at.toISOString().slice(2, 19).replaceAll(/[-:T]/g, '')}Z`));
const generalName = (host: string): Buffer =>
  isIP(host) ? tagged(0x87, Buffer.from(host.split('.').map(Number))) : tagged(0x82, Buffer.from(host));
