/** @typedef {import('../random.mjs').Random} Random */

/**
 * @typedef {{ kind: 'say', bytes: Buffer } | { kind: 'wait', ms: number } | { kind: 'end' } | { kind: 'reset' }} Step
 */

const statusLines = [
  'HTTP/1.1 200 OK',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 204',
  'HTTP/1.1 200 ',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 205 Reset Content',
  'HTTP/1.1 301 Moved Permanently',
  'HTTP/1.1 404 \xe9\xff',
  'HTTP/1.1 410 Gone',
  'HTTP/1.1 429 Too Many Requests',
  'HTTP/1.1 500 Internal Server Error',
  'HTTP/1.1 503 Service Unavailable',
  'HTTP/1.1 999 Unheard Of',
  'HTTP/1.1 099 Too Low',
  'HTTP/1.1 000 Nothing',
  'HTTP/1.1 1000 Too High',
  'HTTP/1.1 20 Too Short',
  'HTTP/1.1 -200 OK',
  'HTTP/1.1 2e2 OK',
  'HTTP/2.0 200 OK',
  'HTTP/9.9 200 OK',
  'http/1.1 200 OK',
  'HTTP/1.1  200 OK',
  ' HTTP/1.1 200 OK',
  'HTTP/1.1\t200\tOK',
  '\r\n\r\nHTTP/1.1 200 OK',
  'ICY 200 OK',
  '220 mail.example ESMTP',
  'RTSP/1.0 200 OK',
  '\x16\x03\x03\x00\x02\x02\x28',
  `HTTP/1.1 200 ${'O'.repeat(70_000)}K`,
  '',
];

const informational = [
  'HTTP/1.1 100 Continue',
  'HTTP/1.1 102 Processing',
  'HTTP/1.1 103 Early Hints',
  'HTTP/1.1 199 X',
  'HTTP/1.1 101 Switching Protocols',
];

const headerLines = [
  'Content-Type: text/plain',
  'Retry-After: 5',
  'Retry-After: -5',
  'Retry-After: 1e9',
  'Retry-After: Sun Nov  6 08:49:37 1994',
  'Retry-After: Fri, 31 Dec 9999 23:59:59 GMT',
  'Retry-After: \xff',
  'Location: http://127.0.0.1:1/',
  'Location: //\x00',
  'Set-Cookie: a=b',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade\r\nUpgrade: websocket',
  'Keep-Alive: timeout=0',
  'Keep-Alive: timeout=99999999999999999999',
  'Keep-Alive: timeout=-1, max=nonsense',
  'Content-Encoding: gzip',
  'Trailer: X',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip',
  'Transfer-Encoding: chunked, identity',
  'Content-Length: 5',
  'Content-Length: 5\r\nContent-Length: 5',
  'Content-Length: 5\r\nContent-Length: 6',
  'Content-Length: -1',
  'Content-Length: +5',
  'Content-Length: 99999999999999999999',
  'Content-Length: 0x5',
  'X-Folded: a\r\n b',
  'X-No-Colon',
  ': no name',
  'X Space: a',
  'X-Nul: a\x00b',
  'X-Bare: a\rb',
  'X-Latin: \xe9\xff',
  '__proto__: a',
  'constructor: a',
  `X-Large: ${'a'.repeat(20_000)}`,
  Array.from({ length: 3000 }, (_, nr) => `X-${nr}: a`).join('\r\n'),
];

const bodies = [
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '5;x=y\r\nhello\r\n0\r\nX: trailer\r\n\r\n',
  'z\r\nhello\r\n0\r\n\r\n',
  'ffffffffffffffff\r\nhello',
  '-1\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello world\r\n0\r\n\r\n',
  '0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
  '\x1f\x8b\x08\x00\x00',
  '\xe9\xff\xfe'.repeat(3000),
  'x'.repeat(300_000),
  'helloHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
];

/**
 * The reaction of a receiver to a call: bytes that may be an answer, in pieces, with pauses, cut off anywhere.
 * @param {Random} random
 * @returns {{ steps: Step[] }}
 */
export function strangeAnswer(random) {
  const kind = random.next();
  if (kind < 0.03) return { steps: [] }; // says nothing, and keeps the connection
  if (kind < 0.06) return { steps: [{ kind: 'reset' }] };
  if (kind < 0.09) return { steps: [{ kind: 'end' }] };
  if (kind < 0.13) return { steps: [say(noise(random)), { kind: random.next() < 0.5 ? 'end' : 'reset' }] };
  return { steps: [...inPieces(Buffer.from(answerText(random), 'latin1'), random), ...ending(random)] };
}

/** @param {Random} random */
function answerText(random) {
  if (random.next() < 0.25) return plainAnswer(random);
  const before = random.next() < 0.15 ? `${random.oneOf(informational)}\r\n${maybeHeader(random)}\r\n` : '';
  const count = random.oneOf([0, 1, 1, 2, 3, 5]);
  const lines = Array.from({ length: count }, () => random.oneOf(headerLines));
  const end = random.next() < 0.9 ? '\r\n' : random.oneOf(['\n', '\r', '\r\r\n']);
  return `${before}${[random.oneOf(statusLines), ...lines, ''].join(end)}${end}${random.oneOf(bodies)}`;
}

/** @param {Random} random */
const maybeHeader = (random) => (random.next() < 0.3 ? `${random.oneOf(headerLines)}\r\n` : '');

/**
 * One that any client understands: the connection stays, and the next call meets what was left on it. @param {Random}
 * random
 */
function plainAnswer(random) {
  const status = random.oneOf([200, 204, 400, 404, 500, 503]);
  const body = status === 204 ? '' : 'x'.repeat(random.oneOf([0, 10, 5000, 300_000]));
  const left =
    random.next() < 0.1 ? random.oneOf(['\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 'noise']) : '';
  return `HTTP/1.1 ${status} X\r\n${status === 204 ? '' : `Content-Length: ${body.length}\r\n`}\r\n${body}${left}`;
}

/** @param {Random} random */
const noise = (random) => Buffer.from(Array.from({ length: random.oneOf([1, 100, 5000]) }, () => random.next() * 256));

/** @param {Buffer} bytes @returns {Step} */
const say = (bytes) => ({ kind: 'say', bytes });

/**
 * @param {Buffer} bytes
 * @param {Random} random
 * @returns {Step[]}
 */
function inPieces(bytes, random) {
  const cut = random.next() < 0.15 ? bytes.subarray(0, Math.floor(random.next() * bytes.length)) : bytes;
  const pieces = random.oneOf([1, 1, 1, 2, 3, 8]);
  /** @type {Step[]} */
  const steps = [];
  for (let nr = 0; nr < pieces; nr++) {
    const [from, to] = [nr, nr + 1].map((each) => Math.floor((cut.length * each) / pieces));
    steps.push(say(cut.subarray(from, to)));
    if (pieces > 1) steps.push({ kind: 'wait', ms: random.oneOf([0, 1, 5, 20, 200]) });
  }
  return steps;
}

/** @param {Random} random @returns {Step[]} */
function ending(random) {
  const way = random.next();
  if (way < 0.5) return []; // the connection stays
  if (way < 0.75) return [{ kind: 'end' }];
  if (way < 0.85) return [{ kind: 'reset' }];
  return [{ kind: 'wait', ms: random.oneOf([1, 50, 600]) }, { kind: random.next() < 0.5 ? 'end' : 'reset' }];
}
