import jwt from 'jsonwebtoken';
import { createSecretKey } from 'node:crypto';

/**
 * @param {{ clientId: string, secret: string }} application
 * @param {Record<string, unknown>} [claims] added, or replacing
 */
export function signed({ clientId, secret }, claims = {}) {
  const iat = Math.floor(Date.now() / 1000);
  const payload = { iss: clientId, client_id: clientId, user_id: '', user_representation: '', iat, ...claims };
  // Given a text, the library would try to read a private key in it first, which takes half a millisecond.
  return jwt.sign(payload, createSecretKey(Buffer.from(secret)));
}

/**
 * Tokens that are refused, each for a reason of its own.
 * @param {{ clientId: string, secret: string }} application
 */
export function badTokens(application) {
  const good = signed(application);
  const [header = '', payload = '', signature = ''] = good.split('.');
  const encode = (/** @type {unknown} */ part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const none = encode({ alg: 'none', typ: 'JWT' });
  return [
    'x',
    '..',
    '...',
    `${header}.${payload}.`,
    `${header}.${payload}.${signature.slice(1)}`,
    `${header}..${signature}`,
    `${none}.${payload}.`,
    ...[null, 'text', 1, true, []].map((part) => `${encode(part)}.${payload}.${signature}`),
    `${header}.${encode(null)}.${signature}`,
    `${header}.${encode([])}.${signature}`,
    `${header}.${encode('text')}.${signature}`,
    `${header}.${Buffer.from('{').toString('base64url')}.${signature}`,
    signed(application, { client_id: null }),
    signed(application, { client_id: 7 }),
    signed(application, { client_id: ['a'] }),
    signed(application, { client_id: { a: 1 } }),
    signed(application, { client_id: '__proto__' }),
    signed(application, { client_id: '\0' }),
    signed({ ...application, secret: 'another secret that is long enough' }),
    signed(application, { iat: 1 }),
    signed(application, { exp: 1 }),
    signed(application, { nbf: 4e9 }),
    'x'.repeat(10_000),
  ];
}
