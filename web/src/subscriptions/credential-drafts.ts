import type { components } from '../../generated/admin-api.d.ts';

export type CredentialChanges = components['schemas']['CredentialChanges'];

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
};

export const emptyIdentity: IdentityDraft = { certificate: '', key: '', authority: '' };

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
        tokenTls: null,
      };
  }
}

export const isAuthorizationComplete = ({ kind, auth, clientId, secret, tokenUrl, clientSecret }: AuthorizationDraft) =>
  ({
    verbatim: auth.trim() !== '',
    zgw: clientId !== '' && secret !== '',
    oauth2: tokenUrl !== '' && clientId !== '' && clientSecret !== '',
  })[kind];

export const toIdentity = (draft: IdentityDraft): NonNullable<CredentialChanges['tls']> =>
  Object.fromEntries(Object.entries(draft).filter(([, value]) => value.trim() !== ''));

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
