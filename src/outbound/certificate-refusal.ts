import { codeOfCall } from './describe-error.js';

/**
 * The certificate of the receiver is nothing to this side: no trusted authority has signed it, as far as this identity
 * trusts any, or one of the chain, which may be its own authority, has ended. Not that it is for another name
 * (ERR_TLS_CERT_ALTNAME_INVALID): that it tells each identity.
 */
const notTrusted: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_SIGNATURE_FAILURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
]);

/**
 * The receiver says that the client certificate, or the lack of one, is nothing to it (RFC 8446 §6.2). With TLS 1.2
 * that it lacks one is told by `handshake_failure`. Versions of OpenSSL name the alerts differently: `SSLV3_ALERT_…`,
 * `SSL/TLS_ALERT_…`, `TLSV13_ALERT_…`.
 */
const toldByReceiver =
  /_ALERT_(?:(?:NO|BAD|UNSUPPORTED)_CERTIFICATE|CERTIFICATE_[A-Z]+|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)$/;

/** This version of Node, or of OpenSSL, refuses the certificate or key that the call was to be made with. */
const refusedHere = /^ERR_(?:OSSL_|CRYPTO_|SSL_(?:CA|EE)_)/;

/**
 * Whether a connection came to nothing, or was ended, because of the TLS certificates of this call: another with
 * another identity may find the receiver well.
 */
export function isCertificateRefusal(error: Error): boolean {
  const code = codeOfCall(error);
  return code !== undefined && (notTrusted.has(code) || toldByReceiver.test(code) || refusedHere.test(code));
}
