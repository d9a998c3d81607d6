import { bodyTwists, otherTwists } from './twists.mjs';
import { asHeader, encode, fittingValue, nastyTexts, toJson, uuid } from './values.mjs';

/** @typedef {import('../random.mjs').Random} Random */
/** @typedef {import('./operations.mjs').Operation} Operation */
/** @typedef {import('./twists.mjs').Draft} Draft */

/**
 * @typedef {object} FuzzedRequest
 * @property {number} nr
 * @property {Operation} operation
 * @property {string} method
 * @property {Buffer} bytes
 * @property {number[]} mayAlso statuses that it may be answered with beside those of its operation
 * @property {string} requestId that the audit log has for it
 * @property {string[]} twists changes that were made to it
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
 */

/**
 * Bytes of a head that may be refused for its length, at 16 KiB, and headers that may be refused for their number,
 * above 100.
 */
const [longHead, manyHeaders] = [16_000, 95];

/**
 * Whether the connection is not to be used again. Node 20 takes no notice of a broken request after one that asked for
 * an upgrade, and cuts the connection when its time is over (`requestTimeout`, 30 to 60 s): that is no hang, but takes
 * as long.
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
  if (bytes.indexOf('\r\n\r\n') > longHead || draft.headers.length > manyHeaders) draft.mayAlso.push(431);
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
  // Those who say that they wait are let wait. The request id is that by which this request is found again.
  const left = ['wait', 'X-Request-Id'];
  const optional = operation.parameters.filter(({ name }) => !left.includes(name) && random.next() < 0.4);
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
