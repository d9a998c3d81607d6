import { describe, expect, it } from 'vitest';
import { isCertificateRefusal } from './certificate-refusal.js';

const withCode = (code: string | undefined) => Object.assign(new Error('failed'), { code });

describe('an error of a call', () => {
  it.each([
    // This side does not trust the receiver.
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    // The receiver does not trust this side, as versions of OpenSSL name that.
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED',
    'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
    'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
    // Node refuses what it is to show.
    'ERR_OSSL_PEM_NO_START_LINE',
    'ERR_SSL_EE_KEY_TOO_SMALL',
  ])('is about the certificates of that call: %s', (code) => {
    expect(isCertificateRefusal(withCode(code))).toBe(true);
  });

  it.each([
    'ECONNRESET',
    'ECONNREFUSED',
    'UND_ERR_SOCKET',
    // The same for each identity.
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR',
    undefined,
  ])('says no such thing: %s', (code) => {
    expect(isCertificateRefusal(withCode(code))).toBe(false);
  });

  it('is looked for where undici and Node put it', () => {
    expect(isCertificateRefusal(new TypeError('failed', { cause: withCode('CERT_HAS_EXPIRED') }))).toBe(true);
    expect(isCertificateRefusal(new AggregateError([withCode('CERT_HAS_EXPIRED'), withCode('CERT_HAS_EXPIRED')]))).toBe(
      true,
    );
  });
});
