// A call to a receiver as verifiers get it, and the ways in which one can be forged.
import { createHmac } from 'node:crypto';

/**
 * @typedef {object} Call
 * @property {string | undefined} id `webhook-id`; undefined: the header is missing
 * @property {string | undefined} timestamp
 * @property {string | undefined} signature
 * @property {Buffer} body
 */

/**
 * @typedef {object} Keys to verify with
 * @property {string} v1 secret
 * @property {string} v1a public key
 */

/** @typedef {'v1' | 'v1a'} Scheme */

/** @param {import('node:http').IncomingHttpHeaders} headers */
export function callOf(headers, /** @type {Buffer} */ body) {
  const text = (/** @type {string} */ name) => /** @type {string | undefined} */ (headers[name]);
  return { id: text('webhook-id'), timestamp: text('webhook-timestamp'), signature: text('webhook-signature'), body };
}

/**
 * The signatures of one scheme.
 * @param {Call} call
 * @param {Scheme} scheme
 */
export const signaturesOf = (call, scheme) =>
  (call.signature ?? '').split(' ').filter((each) => each.startsWith(`${scheme},`));

/**
 * Signed with `v1`, as whoever has the secret can.
 * @param {Buffer} key
 * @param {Call} call
 * @returns {Call}
 */
function signed(key, call) {
  const mac = createHmac('sha256', key).update(`${call.id}.${call.timestamp}.`).update(call.body).digest('base64');
  return { ...call, signature: `v1,${mac}` };
}

const bytesOf = (/** @type {string} */ secret) => Buffer.from(secret.replace('whsec_', ''), 'base64');
/** Seconds from now that receivers do not accept. The next one may begin before it is verified. */
const tooFar = 310;
const nowSeconds = () => Math.floor(Date.now() / 1000);
const timed = (/** @type {Call} */ call, /** @type {number} */ seconds) => ({ ...call, timestamp: String(seconds) });
const changed = (/** @type {Buffer} */ body) => {
  const other = Buffer.from(body);
  other.writeUInt8(other.readUInt8(other.length >> 1) ^ 1, other.length >> 1);
  return other;
};
/** The first signature of a scheme, without its name. */
const valueOf = (/** @type {Call} */ call, /** @type {Scheme} */ scheme) =>
  signaturesOf(call, scheme)[0]?.slice(scheme.length + 1) ?? '';

/**
 * Every one must be refused. `key`: verified with another one than the right one.
 * @typedef {(call: Call, keys: { right: string, other: string, scheme: Scheme }) => Partial<Call> & { key?: string }} Forgery
 */

/** @type {Record<string, Forgery>} */
const ofAnyScheme = {
  'one bit of the body is changed': ({ body }) => ({ body: changed(body) }),
  'the body ends in a space more': ({ body }) => ({ body: Buffer.concat([body, Buffer.from(' ')]) }),
  'another id': ({ id }) => ({ id: `${id}0` }),
  'another time, with the signature of before': (call) => timed(call, Number(call.timestamp) - 1),
  'a time that is no number': () => ({ timestamp: 'now' }),
  // More than Python makes a number of; Node takes headers of up to 16 KB.
  'a time of 5000 digits': () => ({ timestamp: '9'.repeat(5000) }),
  'no id': () => ({ id: undefined }),
  'no time': () => ({ timestamp: undefined }),
  'no signature': () => ({ signature: undefined }),
  'an empty signature': (_, { scheme }) => ({ signature: `${scheme},` }),
  'a signature that is cut off': (call, { scheme }) => ({
    signature: `${scheme},${valueOf(call, scheme).slice(0, -4)}`,
  }),
  'only an unknown version': (call, { scheme }) => ({ signature: `v2,${valueOf(call, scheme)}` }),
  'a signature in hexadecimal': (call, { scheme }) => ({
    signature: `${scheme},${Buffer.from(valueOf(call, scheme), 'base64').toString('hex')}`,
  }),
  'another key': (_, { other }) => ({ key: other }),
};

/** @type {Record<string, Forgery>} */
const ofV1 = {
  'signed well, but too long ago': (call, { right }) => signed(bytesOf(right), timed(call, nowSeconds() - tooFar)),
  'signed well, but ahead of time': (call, { right }) => signed(bytesOf(right), timed(call, nowSeconds() + tooFar)),
  'an empty key, and signed with that': (call) => ({ ...signed(Buffer.alloc(0), call), key: 'whsec_' }),
};

/** @param {Scheme} scheme */
export const forgeriesOf = (scheme) => Object.entries(scheme === 'v1' ? { ...ofAnyScheme, ...ofV1 } : ofAnyScheme);
