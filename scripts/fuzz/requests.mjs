import { nastyTexts, nastyValue, fittingValue, RawJson, toJson, uuid } from './values.mjs';

/** @typedef {import('../random.mjs').Random} Random */
/** @typedef {import('./operations.mjs').Operation} Operation */

/**
 * @typedef {object} FuzzedRequest
 * @property {number} nr
 * @property {Operation} operation
 * @property {string} method
 * @property {Buffer} bytes
 * @property {number[]} mayAlso statuses that it may be answered with beside those of its operation
 * @property {string} requestId that the audit log has for it
 * @property {string[]} twists what was done to it
 *
 * @typedef {object} Surroundings
 * @property {readonly Operation[]} operations
 * @property {import('./seen.mjs').Seen} seen
 * @property {string} host
 * @property {Tokens} tokens
 *
 * @typedef {object} Tokens
 * @property {readonly string[]} good of several applications; the first one may do everything
 * @property {readonly string[]} bad
 *
 * @typedef {object} Draft
 * @property {string} method
 * @property {string} path
 * @property {[name: string, value: string][]} query percent-encoded already
 * @property {[name: string, value: string][]} headers
 * @property {unknown} body undefined: none
 * @property {Buffer | undefined} bytes instead of the body
 * @property {boolean} isChunked
 * @property {number[]} mayAlso
 *
 * @typedef {(draft: Draft, random: Random, around: Surroundings & { operation: Operation }) => void} Twist
 */

/** Bytes of a head that may be refused for its length, at 16 KiB. */
const longHead = 16_000;

const encode = (/** @type {string} */ text) =>
  Buffer.from(text)
    .toString('latin1')
    .replace(/[^\w.~-]/g, percent);
const percent = (/** @type {string} */ character) =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
/** What HTTP lets a header hold. */
const asHeader = (/** @type {string} */ text) => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').slice(0, 2000);

/** @type {Record<string, Twist>} */
const bodyTwists = {
  'a field that is another': (draft, random) => (draft.body = replaceSomewhere(draft.body, random, nastyValue(random))),
  'a field that is missing': (draft, random) => {
    if (!isObject(draft.body)) return;
    const names = Object.keys(draft.body);
    if (names.length > 0) delete draft.body[random.oneOf(names)];
  },
  'a field more': (draft, random) => {
    if (isObject(draft.body)) draft.body = { ...draft.body, [random.oneOf(nastyTexts)]: nastyValue(random) };
  },
  'a field twice': (draft, random) => {
    if (!isObject(draft.body)) return;
    const names = Object.keys(draft.body);
    if (names.length === 0) return;
    const again = `${JSON.stringify(random.oneOf(names))}:${toJson(nastyValue(random))}`;
    draft.body = new RawJson(`{${again},${toJson(draft.body).slice(1)}`);
  },
  'another body': (draft, random) => (draft.body = nastyValue(random)),
  'half a body': (draft, random) => {
    const text = toJson(draft.body);
    draft.bytes = Buffer.from(text.slice(0, Math.floor(random.next() * text.length)));
  },
  'bytes that are no UTF-8': (draft, random) => {
    const bytes = Buffer.from(toJson(draft.body));
    for (let nr = 0; nr < 3 && bytes.length > 0; nr++)
      bytes[Math.floor(random.next() * bytes.length)] = random.oneOf([0x80, 0xc0, 0xff, 0xed, 0x00, 0x0b]);
    draft.bytes = bytes;
  },
  'another encoding': (draft, random) => {
    const text = toJson(draft.body);
    draft.bytes = random.oneOf([
      Buffer.from(`\u{feff}${text}`),
      Buffer.from(`\u{feff}${text}`, 'utf16le'),
      Buffer.from(text, 'latin1'),
      Buffer.from(` \r\n\t${text}\n`),
      Buffer.from(`${text}${text}`),
      Buffer.alloc(0),
    ]);
  },
  'another content type': (draft, random) =>
    setHeader(
      draft,
      'Content-Type',
      random.oneOf([
        '',
        'text/plain',
        'application/json; charset=utf-8',
        'application/json; charset=utf-16',
        'APPLICATION/JSON',
        'application/json;;;=',
        'application/problem+json',
        'multipart/form-data; boundary=x',
        'application/x-www-form-urlencoded',
        `application/json;${' '.repeat(2000)}x`,
        'application/json, text/plain',
      ]),
    ),
  'a content encoding': (draft, random) =>
    draft.headers.push(['Content-Encoding', random.oneOf(['gzip', 'br', 'identity', '', 'gzip, gzip'])]),
  'in chunks': (draft) => void (draft.isChunked = true),
  'as large as is refused': (draft, random) => {
    if (random.next() < 0.1) draft.body = { naam: 'x'.repeat(1_100_000) };
  },
};

/** @type {Record<string, Twist>} */
const otherTwists = {
  'a parameter of the query': (draft, random, { operation }) => {
    const names = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
    const name = random.oneOf([...names, ...names, ...names, 'unknown', '__proto__', 'limit[]', '']);
    draft.query.push([encode(name), encode(random.oneOf(nastyTexts))]);
  },
  'a query that is badly encoded': (draft, random) => {
    draft.query.push([
      random.oneOf(['', 'limit', '%zz', '%', 'a%00']),
      random.oneOf(['%', '%zz', '%C0%A0', '%ED%A0%80', '%00', '=&=']),
    ]);
  },
  'a parameter twice': (draft) => void draft.query.push(...draft.query),
  'a header of the operation': (draft, random, { operation }) => {
    const names = operation.parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name);
    if (names.length > 0) draft.headers.push([random.oneOf(names), asHeader(random.oneOf(nastyTexts))]);
  },
  'another Accept': (draft, random) =>
    draft.headers.push([
      'Accept',
      random.oneOf([
        'text/html',
        'application/json;q=0',
        '*/*;q=nonsense',
        ', ,',
        `${'a/b,'.repeat(500)}*/*`,
        'application/*',
      ]),
    ]),
  'another Host': (draft, random) =>
    setHeader(
      draft,
      'Host',
      random.oneOf(['', 'evil.example', 'a b', '[::1', 'x'.repeat(500), 'host:99999999', '"', 'é']),
    ),
  'headers of a proxy': (draft, random) => {
    const value = random.oneOf(['1.2.3.4', '::1, 5.6.7.8', 'javascript', '"', 'x'.repeat(1000), 'é', ',,,']);
    for (const name of ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'Forwarded'])
      draft.headers.push([name, value]);
  },
  'another request id': (draft, random) => setHeader(draft, 'X-Request-Id', asHeader(random.oneOf(nastyTexts))),
  'an expectation': (draft, random) => {
    draft.headers.push(['Expect', random.oneOf(['100-continue', '200-ok', ''])]);
    draft.mayAlso.push(417);
  },
  // See `closesAfter`.
  'an upgrade': (draft, random) =>
    draft.headers.push(['Connection', 'Upgrade'], ['Upgrade', random.oneOf(['websocket', 'h2c', 'TLS/1.0'])]),
  'many headers': (draft, random) => {
    const many = random.oneOf([50, 1500, 4000]);
    for (let nr = 0; nr < many; nr++) draft.headers.push([`X-${nr}`, 'v']);
    // Node reads 1000 at most: those after them, Host and the token among them, are not there.
    if (many > 1000) draft.mayAlso.push(400, 403);
  },
  'headers that are large': (draft, random) => {
    const length = random.oneOf([8000, 17_000, 70_000]);
    draft.headers.push(['X-Large', 'v'.repeat(length)]);
  },
  'no token, or a bad one': (draft, random, { tokens }) =>
    setHeader(
      draft,
      'Authorization',
      random.oneOf(['', 'Bearer', 'Basic eDp5', 'Bearer ☃', ...tokens.bad.map((token) => `Bearer ${token}`)]),
    ),
  'the token of another': (draft, random, { tokens }) =>
    setHeader(draft, 'Authorization', `Bearer ${random.oneOf(tokens.good)}`),
  'two tokens': (draft, random, { tokens }) =>
    draft.headers.push(['Authorization', `Bearer ${random.oneOf(tokens.bad)}`]),
  'another path': (draft, random) => {
    const { path } = draft;
    const at = Math.floor(random.next() * path.length);
    draft.path = random.oneOf([
      `${path}/`,
      `/${path}`,
      path.toUpperCase(),
      `${path}%2F`,
      `${path}%`,
      `${path}%zz`,
      `${path}/%2e%2e/x`,
      `${path}/../x`,
      `${path};a=b`,
      `${path}#x`,
      `${path.slice(0, at)}%00${path.slice(at)}`,
      `${path.slice(0, at)}\xe9${path.slice(at)}`,
      `http://elsewhere.example${path}`,
      `${path}/${'x'.repeat(3000)}`,
    ]);
    draft.mayAlso.push(400, 404, 405);
  },
  'another method': (draft, random) => {
    draft.method = random.oneOf([
      'GET',
      'HEAD',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'TRACE',
      'PROPFIND',
      'QUERY',
    ]);
    // Whatever the path does with that method; another operation may be there.
    draft.mayAlso.push(200, 201, 202, 204, 400, 403, 404, 405, 406, 409, 413, 415, 422);
  },
  'a body where none is read': (draft, random) => {
    draft.body ??= nastyValue(random);
    if (!draft.headers.some(([name]) => name === 'Content-Type'))
      draft.headers.push(['Content-Type', 'application/json']);
  },
};

/**
 * Whether the connection is not to be used again. Node up to 24 takes no notice of a broken request after one that asked for an
 * upgrade, and cuts the connection when its time is over (`requestTimeout`, 30 to 60 s): that is no hang, but takes as long.
 * @param {FuzzedRequest} request
 */
export const closesAfter = ({ twists }) => twists.includes('an upgrade');

/**
 * A request that fits the document, and then up to three things are done to it.
 * @param {number} nr
 * @param {Random} random
 * @param {Surroundings} around
 * @returns {FuzzedRequest}
 */
export function fuzzedRequest(nr, random, around) {
  const operation = random.oneOf(around.operations);
  const draft = fittingDraft(operation, nr, random, around);
  const choices = { ...otherTwists, ...(operation.body ? bodyTwists : {}) };
  const count = random.oneOf([0, 1, 1, 1, 2, 3]);
  const twists = Array.from({ length: count }, () => {
    // Half of what is done to a request that has a body is done to that.
    const from = operation.body && random.next() < 0.5 ? bodyTwists : choices;
    return random.oneOf(Object.keys(from));
  });
  for (const twist of twists) choices[twist]?.(draft, random, { ...around, operation });
  const requestId = draft.headers.findLast(([name]) => name === 'X-Request-Id')?.[1] ?? '';
  const bytes = bytesOf(draft);
  if (bytes.indexOf('\r\n\r\n') > longHead) draft.mayAlso.push(431);
  return { nr, operation, method: draft.method, bytes, mayAlso: draft.mayAlso, requestId, twists };
}

/**
 * @param {Operation} operation
 * @param {number} nr
 * @param {Random} random
 * @param {Surroundings} around
 * @returns {Draft}
 */
function fittingDraft(operation, nr, random, { seen, host, tokens }) {
  const known = (/** @type {string} */ name) => seen.underName(name, random);
  const fitting = (/** @type {any} */ schema, /** @type {string} */ name) =>
    fittingValue(schema, random, operation.resolve, known, name);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, /** @type {string} */ name) => {
    if (random.next() < 0.1) return encode(random.oneOf(nastyTexts)) || '%20';
    return encode(seen.inPath(operation.path, name, random) ?? (name === 'key' ? `key-${nr % 50}` : uuid(random)));
  });
  const optional = operation.parameters.filter(() => random.next() < 0.4);
  const textOf = (/** @type {unknown} */ value) => (typeof value === 'string' ? value : String(value));
  return {
    method: operation.method,
    path,
    query: optional
      .filter((parameter) => parameter.in === 'query')
      .map(({ name, schema }) => [encode(name), encode(textOf(fitting(schema, name)))]),
    headers: [
      ['Host', host],
      ['X-Request-Id', `fuzz-${nr}`],
      ['Authorization', `Bearer ${tokens.good[0]}`],
      ...(operation.body ? [/** @type {[string, string]} */ (['Content-Type', 'application/json'])] : []),
      ...optional
        .filter((parameter) => parameter.in === 'header')
        .map(({ name, schema }) => /** @type {[string, string]} */ ([name, asHeader(textOf(fitting(schema, name)))])),
    ],
    body: operation.body ? fitting(operation.body, '') : undefined,
    bytes: undefined,
    isChunked: false,
    mayAlso: [],
  };
}

/** @param {Draft} draft */
function bytesOf({ method, path, query, headers, body, bytes, isChunked }) {
  const content = bytes ?? (body === undefined ? undefined : Buffer.from(toJson(body)));
  const framing =
    content === undefined ? [] : [isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${content.length}`];
  const target = query.length === 0 ? path : `${path}?${query.map(([name, value]) => `${name}=${value}`).join('&')}`;
  const head = [`${method} ${target} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`), ...framing];
  return Buffer.concat([
    Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'),
    content === undefined ? Buffer.alloc(0) : isChunked ? inChunks(content) : content,
  ]);
}

/** @param {Buffer} content */
function inChunks(content) {
  const half = content.length >> 1;
  const parts = [content.subarray(0, half), content.subarray(half)].filter((part) => part.length > 0);
  const written = parts.flatMap((part) => [
    Buffer.from(`${part.length.toString(16)};ext=1\r\n`),
    part,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...written, Buffer.from('0\r\nTrailer: x\r\n\r\n')]);
}

/**
 * @param {Draft} draft
 * @param {string} name
 * @param {string} value
 */
function setHeader(draft, name, value) {
  draft.headers = [...draft.headers.filter(([each]) => each !== name), [name, asHeader(value)]];
}

/**
 * A copy in which one value, at any depth, is another.
 * @param {unknown} value
 * @param {Random} random
 * @param {unknown} other
 * @returns {unknown}
 */
function replaceSomewhere(value, random, other) {
  if (Array.isArray(value) && value.length > 0 && random.next() < 0.8) {
    const at = Math.floor(random.next() * value.length);
    return value.with(at, replaceSomewhere(value[at], random, other));
  }
  if (isObject(value) && Object.keys(value).length > 0 && random.next() < 0.9) {
    const name = random.oneOf(Object.keys(value));
    return { ...value, [name]: replaceSomewhere(value[name], random, other) };
  }
  return other;
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof RawJson);
