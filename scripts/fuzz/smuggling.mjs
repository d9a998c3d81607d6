/** @typedef {import('../random.mjs').Random} Random */

/**
 * A channel of such a name exists only where the server carried out a request that was hidden in another one's body.
 */
export const smuggledName = 'smuggled-';

/**
 * Bytes that two servers could read as one request or as two, or that are no HTTP: whoever reads two lets a caller
 * behind a proxy speak for others (RFC 9112 §11.2).
 * @param {number} nr
 * @param {Random} random
 * @param {{ host: string, token: string }} around
 * @returns {{ name: string, bytes: Buffer }}
 */
export function smugglingRequest(nr, random, { host, token }) {
  const name = random.oneOf(Object.keys(forms));
  const authorized = `Host: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`;
  const body = JSON.stringify({ naam: `${smuggledName}${nr}` });
  const hidden = `POST /api/v1/kanaal HTTP/1.1\r\n${authorized}Content-Length: ${body.length}\r\n\r\n${body}`;
  const start = `POST /api/v1/notificaties HTTP/1.1\r\n${authorized}`;
  const text = forms[name]?.({ start, hidden, host, authorized }, random) ?? '';
  return { name, bytes: Buffer.from(text, 'latin1') };
}

/**
 * @typedef {object} Parts
 * @property {string} start request line and headers
 * @property {string} hidden a whole request
 * @property {string} host
 * @property {string} authorized
 */

const lastChunk = '0\r\n\r\n';
const chunked = 'Transfer-Encoding: chunked\r\n';

/** Each is refused as a whole, or its hidden part is read as a body. @type {Record<string, (parts: Parts, random: Random) => string>} */
const forms = {
  'a length and chunks': ({ start, hidden }) =>
    `${start}Content-Length: ${lastChunk.length}\r\n${chunked}\r\n${lastChunk}${hidden}`,
  'chunks and a length': ({ start, hidden }) =>
    `${start}${chunked}Content-Length: ${lastChunk.length + hidden.length}\r\n\r\n${lastChunk}${hidden}`,
  'two lengths': ({ start, hidden }, random) => {
    const lengths = [`Content-Length: 0\r\n`, `Content-Length: ${hidden.length}\r\n`];
    return `${start}${(random.next() < 0.5 ? lengths : lengths.toReversed()).join('')}\r\n${hidden}`;
  },
  'a length that is none': ({ start, hidden }, random) => {
    const length = random.oneOf([
      '+0',
      '-1',
      '0x0',
      '0,1',
      '0.0',
      ' ',
      '٠',
      '1e1',
      '99999999999999999999',
      '0 0',
      'nan',
    ]);
    return `${start}Content-Length: ${length}\r\n\r\n${hidden}`;
  },
  'an encoding that is not chunked': ({ start, hidden }, random) => {
    const encoding = random.oneOf([
      'Transfer-Encoding: xchunked',
      'Transfer-Encoding: chunked, identity',
      'Transfer-Encoding: identity',
      'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
      'Transfer-Encoding : chunked',
      'Transfer-Encoding: \x0bchunked',
      'Transfer-Encoding: "chunked"',
      'Transfer-Encoding:\r\n chunked, x',
      'Transfer\tEncoding: chunked',
      'Transfer-Encoding\x00: chunked',
    ]);
    return `${start}${encoding}\r\nContent-Length: ${lastChunk.length}\r\n\r\n${lastChunk}${hidden}`;
  },
  'a chunk with a size that is none': ({ start, hidden }, random) => {
    const size = random.oneOf(['0x0', '-0', '+0', ' 0', '0_0', 'g', '', 'fffffffffffffffff', '0\n', '\r0', '0;\n']);
    return `${start}${chunked}\r\n${size}\r\n\r\n${hidden}`;
  },
  'a chunk that is longer than it says': ({ start, hidden }) =>
    `${start}${chunked}\r\n1\r\n{}\r\n${lastChunk}${hidden}`,
  'a line that ends in another way': ({ start, hidden, host }, random) => {
    const [end, name] = [
      random.oneOf(['\n', '\r', '\r\r\n', '\0\r\n']),
      random.oneOf(['X', 'Content-Length: 0', 'X: a']),
    ];
    return `${start}${name}: 1${end}Content-Length: ${hidden.length}\r\nX-Host: ${host}\r\n\r\n${hidden}`;
  },
  'a header that goes on in the next line': ({ start, hidden }) =>
    `${start}X: 1\r\n Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'a header without a colon': ({ start, hidden }) =>
    `${start}Content-Length 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  'a request line that is none': ({ authorized, hidden }, random) => {
    const line = random.oneOf([
      'POST  /api/v1/notificaties HTTP/1.1',
      'POST /api/v1/notificaties HTTP/9.9',
      'POST /api/v1/notificaties HTTP/2.0',
      'POST /api/v1/notificaties',
      'POST\t/api/v1/notificaties\tHTTP/1.1',
      'post /api/v1/notificaties HTTP/1.1',
      'POST /api/v1/noti ficaties HTTP/1.1',
      ' POST /api/v1/notificaties HTTP/1.1',
      'POST * HTTP/1.1',
      'PRI * HTTP/2.0',
      '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    ]);
    return `${line}\r\n${authorized}Content-Length: ${hidden.length}\r\n\r\n${hidden}`;
  },
  'chunks in HTTP/1.0': ({ start, hidden }) =>
    `${start.replace('HTTP/1.1', 'HTTP/1.0')}${chunked}Content-Length: ${hidden.length + lastChunk.length}\r\n\r\n${lastChunk}${hidden}`,
  'a body that ends too early': ({ start, hidden }) =>
    `${start}Content-Length: ${hidden.length + 1000}\r\n\r\n${hidden}`,
  'two hosts': ({ start, hidden }) =>
    `${start}Host: other.example\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
  noise: (_, random) =>
    Array.from({ length: 200 }, () => String.fromCharCode(Math.floor(random.next() * 256))).join(''),
};
