/**
 * How the code of an error of TLS begins, as a regular expression: a certificate that is not trusted, no longer valid
 * or for another name (https://nodejs.org/api/tls.html#x509-certificate-error-codes), or another side that does not
 * speak it.
 */
export const tlsErrorPattern =
  '(?:CERT_|CRL_|ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE)';

const startsAsTls = new RegExp(`^${tlsErrorPattern}`);

/** By its code, which Node gives it: of a connection to any server. */
export function isTlsError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && startsAsTls.test(code);
}
