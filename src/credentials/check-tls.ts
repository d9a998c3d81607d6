import { KeyObject, type X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { InvalidParam } from '../infra/http/problem.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { certificatesIn } from './certificates-in.js';
import { readKey } from './usable-key.js';

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
    ...(own?.[0] && beginsAhead(own[0], nowMs) ? [ahead(own[0])] : []),
    ...(own?.[0] && isKey(ownKey) && !own[0].checkPrivateKey(ownKey) ? [mismatch] : []),
  ];
  return found.length > 0 ? found : refusedByTls({ certificate, key, authority });
}

const noCertificate = (name: string) => ({
  name,
  code: 'invalid-certificate',
  reason: 'Not one or more certificates in PEM, with keys on curves that have names.',
});
const missing = (name: string, reason: string) => ({ name, code: 'required', reason });
const hasEnded = ({ validTo }: X509Certificate, nowMs: number) => Date.parse(validTo) <= nowMs;
const ended = (name: string, { validTo }: X509Certificate) => ({
  name,
  code: 'expired-certificate',
  reason: `It ended at ${new Date(validTo).toISOString()}.`,
});
/** A minute for clocks that differ: it may have been made just now. */
const beginsAhead = ({ validFrom }: X509Certificate, nowMs: number) => Date.parse(validFrom) > nowMs + 60_000;
const ahead = ({ validFrom }: X509Certificate) => ({
  name: 'certificate',
  code: 'future-certificate',
  reason: `It begins at ${new Date(validFrom).toISOString()}: set it then.`,
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

type Refused = Pick<InvalidParam, 'code' | 'reason'>;

const isKey = (key: KeyObject | Refused | undefined): key is KeyObject => key instanceof KeyObject;

const noKey: Refused = { code: 'invalid-key', reason: 'Not one private key in PEM.' };
const encryptedKey: Refused = {
  code: 'encrypted-key',
  reason: 'It needs a passphrase: give it without one, Heraut encrypts it where it is stored.',
};

function privateKeyIn(pem: string): KeyObject | Refused {
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(pem)) return encryptedKey;
  const key = readKey(pem);
  if (key === undefined) return noKey;
  return typeof key === 'string' ? { code: 'unusable-key', reason: `It cannot be used: ${key}.` } : key;
}
