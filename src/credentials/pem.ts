/** A block of a text in PEM. */
export interface PemBlock {
  label: string;
  text: string;
  der: Buffer;
}

/** A chain has three or four certificates; more cost time that grows with their square. */
const mostBlocks = 20;
const block = /-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----/g;

/** In their order. None, too, where there are too many, or one of which OpenSSL might read other bytes. */
export function blocksIn(pem: string): PemBlock[] {
  const begun = pem.split('-----BEGIN ').length - 1;
  if (begun > mostBlocks) return [];
  const found = [...pem.matchAll(block)].flatMap(([text, label, body]) => {
    const der = bytesOf(body!);
    return der ? [{ text, label: label!, der }] : [];
  });
  return found.length === begun ? found : [];
}

function bytesOf(body: string): Buffer | undefined {
  // Lines above an empty one are a header to OpenSSL.
  const lines = body
    .trim()
    .split('\n')
    .map((line) => line.trim());
  const base64 = lines.join('');
  if (lines.includes('') || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return undefined;
  return Buffer.from(base64, 'base64');
}
