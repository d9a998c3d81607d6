import type { components } from '../../generated/admin-api.d.ts';

export type CredentialChanges = components['schemas']['CredentialChanges'];
/** Those there are, without their secrets. */
export type Credentials = components['schemas']['Credentials'];

/** All kinds together, so that what was typed for one is there when its kind is chosen again. */
export interface AuthorizationDraft {
  kind: 'verbatim' | 'zgw' | 'oauth2';
  auth: string;
  clientId: string;
  secret: string;
  userId: string;
  userRepresentation: string;
  tokenUrl: string;
  clientSecret: string;
  scope: string;
  clientAuthentication: 'basic' | 'body';
  /** Towards the token endpoint. */
  tokenTls: IdentityDraft;
  /** Certificates there are that may go, as they were named when somebody agreed. */
  mayGo: string;
}

export interface IdentityDraft {
  certificate: string;
  key: string;
  authority: string;
}

export interface HeaderDraft {
  key: string;
  name: string;
  value: string;
}

export const emptyIdentity: IdentityDraft = { certificate: '', key: '', authority: '' };

export const emptyAuthorization: AuthorizationDraft = {
  kind: 'verbatim',
  auth: '',
  clientId: '',
  secret: '',
  userId: '',
  userRepresentation: '',
  tokenUrl: '',
  clientSecret: '',
  scope: '',
  clientAuthentication: 'basic',
  tokenTls: emptyIdentity,
  mayGo: '',
};

/** To be replaced as a whole: all of it but what is never shown, so that a new secret changes the secret alone. */
export const authorizationOf = (credentials: Credentials): AuthorizationDraft => ({
  ...emptyAuthorization,
  kind: credentials.kind,
  clientId: credentials.clientId ?? '',
  userId: credentials.userId ?? '',
  userRepresentation: credentials.userRepresentation ?? '',
  tokenUrl: credentials.tokenUrl ?? '',
  scope: credentials.scope ?? '',
  clientAuthentication: credentials.clientAuthentication ?? 'basic',
});

/** The certificates towards the token endpoint, by name. */
export const namesOf = (tls: Credentials['tokenTls']): string[] => [
  ...new Set([...(tls?.certificate ? [tls.certificate] : []), ...(tls?.authority ?? [])].map(({ subject }) => subject)),
];

/** Those that would go: they cannot be shown, and are not given again. */
export function goingWith({ kind, tokenTls }: AuthorizationDraft, now: Credentials | undefined): string {
  if (kind !== 'oauth2' || !now?.tokenTls) return '';
  const { certificate, authority } = now.tokenTls;
  return namesOf({
    certificate: tokenTls.certificate.trim() === '' ? certificate : null,
    authority: tokenTls.authority.trim() === '' ? authority : [],
  }).join('; ');
}

export function toAuthorization(draft: AuthorizationDraft): NonNullable<CredentialChanges['authorization']> {
  const { kind, auth, clientId, secret, userId, userRepresentation, tokenUrl, clientSecret, scope } = draft;
  switch (kind) {
    case 'verbatim':
      return { kind, auth };
    case 'zgw':
      return { kind, clientId, secret, userId, userRepresentation };
    case 'oauth2':
      return {
        kind,
        tokenUrl,
        clientId,
        clientSecret,
        scope: scope.trim() === '' ? null : scope,
        clientAuthentication: draft.clientAuthentication,
        tokenTls: unlessEmpty(toIdentity(draft.tokenTls)),
      };
  }
}

/** @param now undefined: there are none yet */
export function isAuthorizationComplete(draft: AuthorizationDraft, now?: Credentials): boolean {
  const { kind, auth, clientId, secret, tokenUrl, clientSecret, mayGo } = draft;
  const going = goingWith(draft, now);
  return {
    verbatim: auth.trim() !== '',
    zgw: clientId !== '' && secret !== '',
    oauth2: tokenUrl !== '' && clientId !== '' && clientSecret !== '' && (going === '' || going === mayGo),
  }[kind];
}

export const toIdentity = (draft: IdentityDraft): NonNullable<CredentialChanges['tls']> =>
  Object.fromEntries(Object.entries(draft).filter(([, value]) => value.trim() !== ''));

const unlessEmpty = <T extends object>(value: T): T | null => (Object.keys(value).length === 0 ? null : value);

/** The credentials that a receiver needs beside an authorization, without the fields left empty. */
export function toOwn(
  identity: IdentityDraft,
  headers: readonly HeaderDraft[],
): Pick<CredentialChanges, 'tls' | 'headers'> {
  const tls = toIdentity(identity);
  return {
    ...(Object.keys(tls).length > 0 && { tls }),
    ...(headers.length > 0 && { headers: toHeaders(headers) }),
  };
}

export const areNamed = (headers: readonly HeaderDraft[]): boolean => headers.every(({ name }) => name.trim() !== '');

export const toHeaders = (drafts: readonly HeaderDraft[]): Record<string, string> =>
  Object.fromEntries(drafts.map(({ name, value }) => [name.trim(), value]));
