import { createPrivateKey, KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { InvalidParam } from '../infra/http/problem.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { whyUnusable } from './usable-key.js';

const blocks = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g;

/**
 * Faults of a TLS identity, by its fields; empty: it can be used.
 * @param nowMs milliseconds since 1970
 */
export function checkTls({ certificate, key, authority }: TlsIdentity, nowMs: number): InvalidParam[] {
  const own = certificate === undefined ? undefined : certificatesIn(certificate);
  const authorities = authority === undefined ? undefined : certificatesIn(authority);
  const ownKey = key === undefined ? undefined : privateKeyIn(key);
  const found = [
    ...(own === null ? [noCertificate('certificate')] : []),
    ...(authorities === null ? [noCertificate('authority')] : []),
    ...(isKey(ownKey) || ownKey === undefined ? [] : [{ name: 'key', ...ownKey }]),
    ...(key !== undefined && certificate === undefined ? [missing('certificate', 'A key needs its certificate.')] : []),
    ...(certificate !== undefined && key === undefined ? [missing('key', 'A certificate needs its key.')] : []),
    ...(own?.[0] && hasEnded(own[0], nowMs) ? [ended('certificate', own[0])] : []),
    ...(authorities?.every((each) => hasEnded(each, nowMs)) ? [ended('authority', authorities[0]!)] : []),
    ...(own?.[0] && isKey(ownKey) && !own[0].checkPrivateKey(ownKey) ? [mismatch] : []),
  ];
  return found.length > 0 ? found : refusedByTls({ certificate, key, authority });
}

const noCertificate = (name: string) => ({
  name,
  code: 'invalid-certificate',
  reason: 'Not one or more certificates in PEM.',
});
const missing = (name: string, reason: string) => ({ name, code: 'required', reason });
const hasEnded = ({ validTo }: X509Certificate, nowMs: number) => Date.parse(validTo) <= nowMs;
const ended = (name: string, { validTo }: X509Certificate) => ({
  name,
  code: 'expired-certificate',
  reason: `It ended at ${new Date(validTo).toISOString()}.`,
});
const mismatch = { name: 'key', code: 'key-mismatch', reason: 'It is not the key of the first certificate.' };

/** Node's TLS is stricter than its parser: it refuses keys that are too short, for example. */
function refusedByTls({ certificate, key, authority }: TlsIdentity): InvalidParam[] {
  try {
    createSecureContext({ cert: certificate, key, ca: authority });
    return [];
  } catch (error) {
    const reason = `TLS refuses it: ${(error as Error).message}.`;
    return [{ name: certificate === undefined ? 'authority' : 'certificate', code: 'invalid-certificate', reason }];
  }
}

/** A chain has three or four; more cost time that grows with their square. */
const mostBlocks = 20;
const blocksIn = (pem: string) => (pem.split('-----BEGIN ').length > mostBlocks + 1 ? [] : [...pem.matchAll(blocks)]);

/** In their order, a receiver's own first. Null: there are none, or there is something else among them. */
export function certificatesIn(pem: string): X509Certificate[] | null {
  const found = blocksIn(pem);
  if (found.length === 0 || found.some(([, type]) => type !== 'CERTIFICATE')) return null;
  try {
    return found.map(([block]) => new X509Certificate(block));
  } catch {
    return null; // the reason is OpenSSL's, and of no use to a caller
  }
}

type Refused = Pick<InvalidParam, 'code' | 'reason'>;

const isKey = (key: KeyObject | Refused | undefined): key is KeyObject => key instanceof KeyObject;

const noKey: Refused = { code: 'invalid-key', reason: 'Not one private key in PEM.' };
const encryptedKey: Refused = {
  code: 'encrypted-key',
  reason: 'It needs a passphrase: give it without one, Heraut encrypts it where it is stored.',
};

function privateKeyIn(pem: string): KeyObject | Refused {
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(pem)) return encryptedKey;
  if (blocksIn(pem).filter(([, type]) => type?.endsWith('PRIVATE KEY')).length !== 1) return noKey;
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return noKey; // the reason is OpenSSL's, and of no use to a caller
  }
  const unusable = whyUnusable(key);
  return unusable === undefined ? key : { code: 'unusable-key', reason: `It cannot be used: ${unusable}.` };
}
