import { createHash } from 'node:crypto';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { certificatesIn } from './certificates-in.js';

/** A token of the Notificaties API's own kind, made by this side for each delivery. */
export interface ZgwAuthorization {
  readonly kind: 'zgw';
  readonly clientId: string;
  readonly secret: string;
  readonly userId: string;
  readonly userRepresentation: string;
}

export const clientAuthentications = ['basic', 'body'] as const;

/** A token that a token endpoint gives for a client's credentials (RFC 6749 §4.4). */
export interface OAuth2Authorization {
  readonly kind: 'oauth2';
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Null: the token endpoint decides. */
  readonly scope: string | null;
  /** Where the token endpoint wants client id and secret. */
  readonly clientAuthentication: (typeof clientAuthentications)[number];
  /** By which this side and the token endpoint know each other. Null: as the web does. */
  readonly tokenTls: TlsIdentity | null;
}

/** `verbatim`: the value of the header is the subscription's `auth`. */
export type Authorization = { readonly kind: 'verbatim' } | ZgwAuthorization | OAuth2Authorization;

/** A TLS identity that connections are kept for. */
export interface NamedIdentity extends TlsIdentity {
  /** The same for the same PEM texts, and for no others. */
  readonly id: string;
  /** Milliseconds since 1970 at which its certificate ends; null: it has none that is read. */
  readonly expiresAt: number | null;
}

/** Proofs that a subscription's receiver is shown with each call beside the call itself. Secrets are among them. */
export type Credentials = Authorization & {
  readonly tls?: NamedIdentity;
  /** By lower-case names; none of them is one that Heraut sends itself. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** Of a subscription for which nothing was set but its `auth`. One object for all: there are many of them. */
export const verbatim: Credentials = { kind: 'verbatim' };

/** As it is stored, before it is encrypted. */
export interface CredentialParts {
  authorization: Authorization;
  tls: TlsIdentity | null;
  headers: Readonly<Record<string, string>> | null;
}

export const noParts: CredentialParts = { authorization: { kind: 'verbatim' }, tls: null, headers: null };

/** @param stored null: nothing was set */
export const partsOf = (stored: string | null): CredentialParts =>
  stored === null ? noParts : (JSON.parse(stored) as CredentialParts);

/** Null: as if nothing had been set. */
export function toStore(parts: CredentialParts): string | null {
  const isNothing = parts.authorization.kind === 'verbatim' && !parts.tls && !parts.headers;
  return isNothing ? null : JSON.stringify(parts);
}

export function credentialsOf({ authorization, tls, headers }: CredentialParts): Credentials {
  if (authorization.kind === 'verbatim' && !tls && !headers) return verbatim;
  return { ...authorization, ...(tls && { tls: named(tls) }), ...(headers && { headers }) };
}

/** @param changes undefined: that part stays as it is */
export const changedParts = (before: CredentialParts, changes: Partial<CredentialParts>): CredentialParts => ({
  authorization: changes.authorization ?? before.authorization,
  tls: changes.tls === undefined ? before.tls : changes.tls,
  headers: changes.headers === undefined ? before.headers : changes.headers,
});

export const changedCredentials = (
  { tls, headers, ...authorization }: Credentials,
  changes: Partial<CredentialParts>,
): Credentials => credentialsOf(changedParts({ authorization, tls: tls ?? null, headers: headers ?? null }, changes));

function named(identity: TlsIdentity): NamedIdentity {
  const { certificate, key, authority } = identity;
  const id = createHash('sha256')
    .update(JSON.stringify([certificate, key, authority]))
    .digest('base64url');
  const [own] = (certificate !== undefined && certificatesIn(certificate)) || [];
  return { ...identity, id, expiresAt: own ? Date.parse(own.validTo) : null };
}
