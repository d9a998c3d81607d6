import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { certificatesIn } from './certificates-in.js';
import { algorithmIds, algorithmOfPrivateKey, tags } from './key-algorithm.js';
import { blocksIn } from './pem.js';

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

/**
 * The one private key in a text. It is parsed only where its algorithm takes no time for that: of DSA, of
 * Diffie-Hellman and of curves that are described rather than named, OpenSSL calculates for seconds while it parses.
 * @returns undefined: there is none, or more than one; a text: why it cannot be used
 */
export function readKey(pem: string): KeyObject | string | undefined {
  const blocks = blocksIn(pem);
  const [block, another] = blocks.filter(({ label }) => label.endsWith('PRIVATE KEY'));
  if (!block || another || !blocks.every((each) => each === block || besides.has(each.label))) return undefined;
  const algorithm = algorithmOfPrivateKey(block);
  if (!algorithm) return undefined;
  if (!parsed.has(algorithm.id)) return `it is of another kind, and may be ${usable}`;
  if (algorithm.id === algorithmIds.ec && algorithm.parameters !== tags.name)
    return `it is EC on a curve without a name, and may be ${usable}`;
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    return undefined; // the reason is OpenSSL's, and of no use to a caller
  }
  return whyUnusable(key) ?? key;
}

/** Stand beside keys in files that tools write, and are not read there. */
const besides: ReadonlySet<string> = new Set(['EC PARAMETERS', 'CERTIFICATE']);
const { rsa, rsaPss, ec, ed25519, ed448, x25519, x448 } = algorithmIds;
const parsed: ReadonlySet<string> = new Set([rsa, rsaPss, ec, ed25519, ed448, x25519, x448]);

/** To parse a key takes half a millisecond: not at every call. */
const known = new WeakMap<TlsIdentity, { reason: string | undefined; endsAt: number }>();

/** The same of an identity that was stored before these limits; undefined: it may be used. */
export const whyKeyUnusable = (identity: TlsIdentity): string | undefined => readOnce(identity).reason;

/** Milliseconds since 1970 at which its own certificate ends; Infinity: it has none that is read. */
export const endOf = (identity: TlsIdentity): number => readOnce(identity).endsAt;

function readOnce(identity: TlsIdentity) {
  let found = known.get(identity);
  if (!found) known.set(identity, (found = { reason: reasonOf(identity), endsAt: readEnd(identity) }));
  return found;
}

function readEnd({ certificate }: TlsIdentity): number {
  const [own] = (certificate !== undefined && certificatesIn(certificate)) || [];
  return own ? Date.parse(own.validTo) : Infinity;
}

function reasonOf({ certificate, key, authority }: TlsIdentity): string | undefined {
  // TLS might read more in a text than is read here.
  if ([certificate, authority].some((pem) => pem !== undefined && certificatesIn(pem) === null))
    return 'a certificate cannot be read, or has a key on a curve without a name';
  const read = key === undefined ? undefined : (readKey(key) ?? 'it is not one private key in PEM');
  return typeof read === 'string' ? `the key of the client certificate cannot be used: ${read}` : undefined;
}
