import { asHeader, encode, nastyTexts, nastyValue, RawJson, toJson } from './values.mjs';

/** @typedef {import('../random.mjs').Random} Random */
/** @typedef {import('./operations.mjs').Operation} Operation */
/** @typedef {import('./requests.mjs').Surroundings} Surroundings */

/**
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

/** @type {Record<string, Twist>} */
export const bodyTwists = {
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
export const otherTwists = {
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
    // Any status of the path for that method is right; another operation may be there.
    draft.mayAlso.push(200, 201, 202, 204, 400, 403, 404, 405, 406, 409, 413, 415, 422);
  },
  'a body where none is read': (draft, random) => {
    draft.body ??= nastyValue(random);
    if (!draft.headers.some(([name]) => name === 'Content-Type'))
      draft.headers.push(['Content-Type', 'application/json']);
  },
};

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
