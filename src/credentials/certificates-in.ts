import { X509Certificate } from 'node:crypto';
import { algorithmIds, algorithmOfCertificate, tags } from './key-algorithm.js';
import { blocksIn, type PemBlock } from './pem.js';

/** In their order, a receiver's own first. Null: there are none, or there is something else among them. */
export function certificatesIn(pem: string): X509Certificate[] | null {
  const found = blocksIn(pem);
  if (found.length === 0 || !found.every((block) => algorithmOf(block)) || found.some(describesCurve)) return null;
  try {
    return found.map(({ text }) => new X509Certificate(text));
  } catch {
    return null; // the reason is OpenSSL's, and of no use to a caller
  }
}

const algorithmOf = ({ label, der }: PemBlock) => (label === 'CERTIFICATE' ? algorithmOfCertificate(der) : undefined);

/** Of algorithms that are not on curves. */
const withParameters: ReadonlySet<string> = new Set([algorithmIds.rsaPss, algorithmIds.dsa]);

/**
 * Whether its key is on a curve that has no name. RFC 5480 forbids to describe a curve in its place, and one can be
 * made such that OpenSSL calculates for half a second while it reads the certificate.
 */
function describesCurve(block: PemBlock): boolean {
  const algorithm = algorithmOf(block);
  return algorithm?.parameters === tags.sequence && !withParameters.has(algorithm.id);
}
