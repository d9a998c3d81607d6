import { describe, expect, it } from 'vitest';
import {
  areNamed,
  authorizationOf,
  emptyIdentity,
  goingWith,
  isAuthorizationComplete,
  toAuthorization,
  toOwn,
  type Credentials,
} from './credential-drafts.ts';

const header = (name: string, value: string) => ({ key: name, name, value });

it('of the certificate and the headers only those are sent that somebody has filled in', () => {
  expect(toOwn(emptyIdentity, [])).toEqual({});
  expect(toOwn({ ...emptyIdentity, authority: 'of the town', key: ' \n' }, [])).toEqual({
    tls: { authority: 'of the town' },
  });
  expect(toOwn(emptyIdentity, [header(' x-api-key ', ' kept as it is ')])).toEqual({
    headers: { 'x-api-key': ' kept as it is ' },
  });
});

it('a header without a name is not complete; without any header nothing is missing', () => {
  expect(areNamed([])).toBe(true);
  expect(areNamed([header('x-api-key', '')])).toBe(true);
  expect(areNamed([header('x-api-key', 'a'), header(' ', 'b')])).toBe(false);
});

describe('an authorization that is replaced', () => {
  const none: Credentials = {
    kind: 'verbatim',
    clientId: null,
    userId: null,
    userRepresentation: null,
    tokenUrl: null,
    scope: null,
    clientAuthentication: null,
    tls: null,
    tokenTls: null,
    headers: [],
    unreadable: null,
  };
  const certificate = (subject: string) => ({ subject, fingerprint: 'AA', expiresAt: '2030-01-01T00:00:00.000Z' });
  const [client, authority] = [certificate('CN=heraut'), certificate('CN=of the town')];
  const oauth2 = { kind: 'oauth2', tokenUrl: 'https://a.test/', clientId: 'heraut' } as const;
  const asked = { ...oauth2, scope: 'write', clientAuthentication: 'body' } as const;

  it('keeps what can be shown', () => {
    const draft = { ...authorizationOf({ ...none, ...asked }), clientSecret: 'new' };
    expect(toAuthorization(draft)).toEqual({ ...asked, clientSecret: 'new', tokenTls: null });
    const zgw = { kind: 'zgw', clientId: 'heraut', userId: 'jan', userRepresentation: 'Jan' } as const;
    const draftOfZgw = { ...authorizationOf({ ...none, ...zgw }), secret: 'new' };
    expect(toAuthorization(draftOfZgw)).toEqual({ ...zgw, secret: 'new' });
  });

  it('loses certificates that are not given again only where that was agreed to', () => {
    const now = { ...none, ...oauth2, tokenTls: { certificate: client, authority: [authority] } };
    const draft = { ...authorizationOf(now), clientSecret: 'new' };
    expect(goingWith(draft, now)).toBe('CN=heraut; CN=of the town');
    expect(isAuthorizationComplete(draft, now)).toBe(false);
    const given = { ...draft, tokenTls: { ...emptyIdentity, authority: 'PEM' }, mayGo: 'CN=heraut; CN=of the town' };
    expect(isAuthorizationComplete(given, now)).toBe(false);
    expect(isAuthorizationComplete({ ...given, mayGo: 'CN=heraut' }, now)).toBe(true);
    expect(toAuthorization(given)).toHaveProperty('tokenTls', { authority: 'PEM' });
    expect(isAuthorizationComplete(draft)).toBe(true);
    expect(goingWith({ ...draft, kind: 'verbatim' }, now)).toBe('');
  });
});
