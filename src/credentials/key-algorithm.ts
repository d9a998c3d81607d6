import type { PemBlock } from './pem.js';

/** The algorithm of a key, found without reading the key: OpenSSL may calculate with it for seconds while it reads. */
export interface KeyAlgorithm {
  /** In hex, as in DER. */
  id: string;
  /** The tag of its parameters; undefined: there are none. */
  parameters: number | undefined;
}

export const algorithmIds = {
  rsa: '2a864886f70d010101',
  rsaPss: '2a864886f70d01010a',
  dsa: '2a8648ce380401',
  ec: '2a8648ce3d0201',
  ed25519: '2b6570',
  ed448: '2b6571',
  x25519: '2b656e',
  x448: '2b656f',
} as const;

/** Tags of DER (X.690). */
export const tags = { integer: 0x02, octets: 0x04, none: 0x05, name: 0x06, sequence: 0x30, zero: 0xa0 } as const;

/** Of a private key, in PKCS#8 or in the form of its algorithm. Undefined: it is no such key. */
export function algorithmOfPrivateKey({ label, der }: PemBlock): KeyAlgorithm | undefined {
  const [whole] = elementsOf(der, 1);
  const [version, second, third] = within(whole, 3);
  if (version?.tag !== tags.integer) return undefined;
  switch (label) {
    case 'PRIVATE KEY':
      return algorithmOfPkcs8(algorithmIn(second), third);
    case 'RSA PRIVATE KEY':
      return second?.tag === tags.integer ? { id: algorithmIds.rsa, parameters: tags.none } : undefined;
    case 'EC PRIVATE KEY':
      return algorithmOfEcKey(whole);
    case 'DSA PRIVATE KEY':
      return { id: algorithmIds.dsa, parameters: undefined };
    default:
      return undefined;
  }
}

function algorithmOfPkcs8(algorithm: KeyAlgorithm | undefined, key: Element | undefined): KeyAlgorithm | undefined {
  if (algorithm?.id !== algorithmIds.ec || algorithm.parameters !== tags.name) return algorithm;
  const own = key?.tag === tags.octets ? algorithmOfEcKey(elementsOf(key.content, 1)[0]) : undefined;
  // The key within may say its curve once more, and that is the one that counts.
  return own && { ...own, parameters: own.parameters ?? algorithm.parameters };
}

/** Of RFC 5915. */
function algorithmOfEcKey(element: Element | undefined): KeyAlgorithm | undefined {
  const [version, key, curve] = within(element, 3);
  if (version?.tag !== tags.integer || key?.tag !== tags.octets) return undefined;
  // Zero, the tag of nothing, where it says none that can be read.
  const parameters = curve?.tag === tags.zero ? (elementsOf(curve.content, 1)[0]?.tag ?? 0) : undefined;
  return { id: algorithmIds.ec, parameters };
}

/** Of the key in a certificate. Undefined: it is no certificate. */
export function algorithmOfCertificate(der: Buffer): KeyAlgorithm | undefined {
  const [signed] = within(elementsOf(der, 1)[0], 1);
  const parts = within(signed, 7);
  // Its version, which the oldest have not, its number, algorithm, issuer, times and subject; then the key.
  const key = parts[parts[0]?.tag === tags.zero ? 6 : 5];
  return algorithmIn(within(key, 1)[0]);
}

interface Element {
  tag: number;
  content: Buffer;
}

function algorithmIn(element: Element | undefined): KeyAlgorithm | undefined {
  const [name, parameters] = within(element, 2);
  return name?.tag === tags.name ? { id: name.content.toString('hex'), parameters: parameters?.tag } : undefined;
}

const within = (element: Element | undefined, most: number): Element[] =>
  element?.tag === tags.sequence ? elementsOf(element.content, most) : [];

/** The first elements, up to one that is none of DER. */
function elementsOf(der: Buffer, most: number): Element[] {
  const found: Element[] = [];
  for (let at = 0; found.length < most && at + 2 <= der.length;) {
    const [tag, first] = [der[at]!, der[at + 1]!];
    const lengthBytes = first < 0x80 ? 0 : first - 0x80;
    const begin = at + 2 + lengthBytes;
    // Tags of more bytes, and lengths that are not said, or of more than any text here.
    if ((tag & 0x1f) === 0x1f || first === 0x80 || lengthBytes > 4 || begin > der.length) break;
    const end = begin + (lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes));
    if (end > der.length) break;
    found.push({ tag, content: der.subarray(begin, end) });
    at = end;
  }
  return found;
}
