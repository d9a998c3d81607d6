import { createPrivateKey } from 'node:crypto';

/**
 * A private key of RSA in PEM with so many bits, which OpenSSL reads as any other. Its numbers are no primes: to make a
 * real one of that length takes seconds to hours.
 */
export function longKey(bits: number): string {
  const number = (bytes: number) => Buffer.alloc(bytes, 0xff).toString('base64url');
  const [whole, half] = [number(bits / 8), number(bits / 16)];
  const parts = { n: whole, e: 'AQAB', d: whole, p: half, q: half, dp: half, dq: half, qi: half };
  return createPrivateKey({ format: 'jwk', key: { kty: 'RSA', ...parts } })
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();
}
