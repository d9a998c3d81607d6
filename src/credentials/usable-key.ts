import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { TlsIdentity } from '../outbound/outbound.service.js';

/**
 * A signature is made at each new connection, and while it is made the process does nothing else. With 4096 bits that
 * takes 4 ms, with 8192 already 32, and each doubling eight times as long (docs/decisions/0091).
 */
const mostRsaBits = 4096;
const curves: ReadonlyMap<string, string> = new Map([
  ['prime256v1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
]);
const usable = `RSA up to ${mostRsaBits} bits, EC on ${[...curves.values()].join(', ')}, Ed25519 or Ed448`;

/** Undefined: a client may prove itself with it. */
export function whyUnusable({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  const { modulusLength = Infinity, namedCurve = 'of its own' } = asymmetricKeyDetails ?? {};
  switch (asymmetricKeyType) {
    case 'ed25519':
    case 'ed448':
      return undefined;
    case 'rsa':
    case 'rsa-pss':
      return modulusLength <= mostRsaBits ? undefined : `it is RSA of ${modulusLength} bits, and may be ${usable}`;
    case 'ec':
      return curves.has(namedCurve) ? undefined : `it is EC on the curve ${namedCurve}, and may be ${usable}`;
    default:
      return `it is ${String(asymmetricKeyType)}, and may be ${usable}`;
  }
}

/** To parse a key takes half a millisecond: not at every call. */
const known = new WeakMap<TlsIdentity, { reason: string | undefined }>();

/** The same of an identity that was stored before these limits; undefined: it may be used. */
export function whyKeyUnusable(identity: TlsIdentity): string | undefined {
  let found = known.get(identity);
  if (!found) known.set(identity, (found = { reason: reasonOf(identity) }));
  return found.reason;
}

function reasonOf({ key }: TlsIdentity): string | undefined {
  if (key === undefined) return undefined;
  let parsed: KeyObject;
  try {
    parsed = createPrivateKey(key);
  } catch {
    return undefined; // TLS refuses it as well, and says why
  }
  const reason = whyUnusable(parsed);
  return reason && `the key of the client certificate cannot be used: ${reason}`;
}
