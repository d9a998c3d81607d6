import { isDeepStrictEqual } from 'node:util';
import { headersToStore, readCredentialChanges, type CredentialChanges } from '../credentials/credentials-io.js';
import type { CredentialParts } from '../credentials/credentials.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import type { Planning } from './planning.js';

type Wanted = Pick<ConfiguredSubscription, 'authorization' | 'tls' | 'headers'>;
type WantedTls = Wanted['tls'];

/**
 * The changes of credentials that the configuration wants, with the secrets that it leaves out taken from those that
 * are there.
 * @param parts those there are; undefined: there are none, or they cannot be decrypted
 * @param auth the `auth` there is, of verbatim authorization; undefined: it cannot be decrypted
 * @returns undefined: something is wrong
 */
export function wantCredentials(
  planning: Planning,
  name: string,
  { authorization, tls, headers }: Wanted,
  parts: CredentialParts | undefined,
  auth: string | undefined,
): CredentialChanges | undefined {
  const incomplete = new Set<string>();
  const missing = (field: string, secret: string) => {
    incomplete.add(field.split('.', 1)[0]!);
    planning.refuse(`${name}.${field}`, 'required', `There is no ${secret} that could stay.`);
  };
  const old = parts?.authorization;
  const whole: Record<string, unknown> = {};
  const completeTls = (field: string, wanted: WantedTls, before: TlsIdentity | null | undefined) => {
    if (!wanted || wanted.key !== undefined || wanted.certificate === undefined) return wanted;
    if (before?.key === undefined) missing(`${field}.key`, 'key');
    return { ...wanted, key: before?.key };
  };
  if (authorization?.kind === 'zgw') {
    const secret = authorization.secret ?? (old?.kind === 'zgw' ? old.secret : undefined);
    if (secret === undefined) missing('authorization.secret', 'secret');
    whole.authorization = { ...authorization, secret };
  } else if (authorization?.kind === 'oauth2') {
    const before = old?.kind === 'oauth2' ? old : undefined;
    const clientSecret = authorization.clientSecret ?? before?.clientSecret;
    if (clientSecret === undefined) missing('authorization.clientSecret', 'secret');
    const tokenTls = completeTls('authorization.tokenTls', authorization.tokenTls, before?.tokenTls);
    whole.authorization = { ...authorization, clientSecret, tokenTls };
  } else if (authorization) {
    // Those of another kind mostly have none: calls would be made without authorization. An empty one can be given.
    if (authorization.auth === undefined && old?.kind !== 'verbatim' && !auth) missing('authorization.auth', 'value');
    whole.authorization = { kind: 'verbatim' };
  }
  if (tls !== undefined) whole.tls = completeTls('tls', tls, parts?.tls);
  if (headers !== undefined) {
    const complete =
      headers &&
      Object.fromEntries(
        Object.entries(headers).map(([header, value]) => {
          const kept = value ?? parts?.headers?.[header.toLowerCase()];
          if (kept === undefined) missing(`headers.${header}`, 'value');
          return [header, kept ?? ''];
        }),
      );
    // Those that are there stay, also where more of them were allowed when they were stored.
    const areThere = complete && isDeepStrictEqual(headersToStore(complete), parts?.headers);
    whole.headers = areThere ? parts?.headers : complete;
  }
  for (const part of incomplete) delete whole[part];
  // A certificate that has ended since does not keep a process from starting.
  for (const part of ['authorization', 'tls', 'headers'] as const)
    if (parts && isDeepStrictEqual(asStored(whole[part]), asStored(parts[part]))) delete whole[part];
  const changes = planning.check(name, () => readCredentialChanges(whole, planning.options.nowMs));
  if (incomplete.size > 0) return undefined;
  if (changes && authorization?.kind === 'verbatim' && authorization.auth !== undefined)
    changes.auth = authorization.auth;
  return changes;
}

/** As JSON has it. A part of another form, such as one without any header, is another, and is read anew. */
const asStored = (part: unknown): unknown => (part === undefined ? undefined : JSON.parse(JSON.stringify(part)));
