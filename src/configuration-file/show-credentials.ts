import { certificatesIn } from '../credentials/certificates-in.js';
import type { CredentialParts } from '../credentials/credentials.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import type { Shown } from './fields-that-differ.js';

/**
 * Credentials as a plan tells them apart: field by field, certificates by their fingerprints.
 * @param auth undefined: it is there, but cannot be decrypted
 */
export function showCredentials({ authorization, tls, headers }: CredentialParts, auth: string | undefined): Shown {
  const fields: Record<string, unknown> = { 'authorization.kind': authorization.kind };
  const secrets: Record<string, string | undefined> = {};
  const showTls = (name: string, { certificate, authority, key }: TlsIdentity) => {
    fields[`${name}.certificate`] = fingerprints(certificate);
    fields[`${name}.authority`] = fingerprints(authority);
    if (key !== undefined) secrets[`${name}.key`] = key;
  };
  switch (authorization.kind) {
    case 'verbatim':
      if (auth !== '') secrets['authorization.auth'] = auth;
      break;
    case 'zgw':
      fields['authorization.clientId'] = authorization.clientId;
      fields['authorization.userId'] = authorization.userId;
      fields['authorization.userRepresentation'] = authorization.userRepresentation;
      secrets['authorization.secret'] = authorization.secret;
      break;
    case 'oauth2':
      fields['authorization.tokenUrl'] = authorization.tokenUrl;
      fields['authorization.clientId'] = authorization.clientId;
      fields['authorization.scope'] = authorization.scope;
      fields['authorization.clientAuthentication'] = authorization.clientAuthentication;
      secrets['authorization.clientSecret'] = authorization.clientSecret;
      if (authorization.tokenTls) showTls('authorization.tokenTls', authorization.tokenTls);
  }
  if (tls) showTls('tls', tls);
  for (const [name, value] of Object.entries(headers ?? {})) secrets[`headers.${name}`] = value;
  return { fields, secrets };
}

/** Of the certificates in a text that was checked. */
const fingerprints = (pem: string | undefined): string[] | null =>
  pem === undefined ? null : (certificatesIn(pem) ?? []).map(({ fingerprint256 }) => fingerprint256);
