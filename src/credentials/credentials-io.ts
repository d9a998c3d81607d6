import * as z from 'zod';
import { atMost } from '../infra/http/at-most.js';
import { checkInput } from '../infra/http/check-input.js';
import { storable } from '../infra/http/input-parts.js';
import { ValidationProblem, type InvalidParam } from '../infra/http/problem.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { certificatesIn } from './certificates-in.js';
import { checkHeaders, headerValue } from './check-headers.js';
import { checkTls } from './check-tls.js';
import { clientAuthentications, type CredentialParts, type Credentials } from './credentials.js';

export const maxAuthLength = 16_384;
const [maxUrlLength, maxPemLength, mostHeaders] = [2048, 65_536, 50];
/**
 * The length that servers mostly take of headers in all; and all of it is looked for in what a receiver answers
 * (docs/decisions/0091).
 */
const maxHeadersLength = 16_384;

/** Headers of a subscription's own, by their names. */
export const headersInput = <Value extends z.ZodType>(value: Value) =>
  atMost(mostHeaders, z.record(z.string().max(256), value).meta({ maxProperties: mostHeaders }));
export const headerText = z.string().max(8192);

const text = (max: number) => z.string().max(max).check(storable);
const secret = () => text(4096).min(1).meta({ writeOnly: true });
const pem = () => z.string().max(maxPemLength);

/**
 * Schemas that may be null have no name: OpenAPI 3.0 wants a type where there is `nullable`, and a reference has none.
 */
export const identityInput = z.strictObject({
  certificate: pem().optional().describe('In PEM, its intermediates after it.'),
  key: pem()
    .meta({ writeOnly: true })
    .optional()
    .describe(
      'Its private key in PEM, without a passphrase: RSA up to 4096 bits, EC on P-256, P-384 or P-521, Ed25519 or Ed448.',
    ),
  authority: pem()
    .optional()
    .describe('Certificates in PEM that the other side must come from, instead of the authorities of the web.'),
});

export const zgwInput = z
  .strictObject({
    kind: z.literal('zgw'),
    clientId: text(255).min(1),
    secret: secret().describe('HS256 key.'),
    userId: text(255).default(''),
    userRepresentation: text(255).default(''),
  })
  .meta({ id: 'ZgwAuthorizationInput', description: 'A JWT as the Notificaties API has it, made for each delivery.' });

export const oauth2Input = z
  .strictObject({
    kind: z.literal('oauth2'),
    tokenUrl: z.string().max(maxUrlLength).refine(isTokenUrl, 'Not an http or https URL, without user and fragment.'),
    clientId: text(1024).min(1),
    clientSecret: secret(),
    scope: text(4096).nullable().default(null),
    clientAuthentication: z
      .enum(clientAuthentications)
      .default('basic')
      .describe('Where client id and secret go: into the `Authorization` header, or into the body.'),
    tokenTls: identityInput.nullable().default(null).describe('For the token endpoint.'),
  })
  .meta({ id: 'OAuth2AuthorizationInput', description: 'A token by OAuth 2.0 client credentials.' });

const verbatimInput = z
  .strictObject({
    kind: z.literal('verbatim'),
    auth: z
      .string()
      .trim()
      .min(1)
      .max(maxAuthLength)
      .regex(headerValue, 'Holds a character that cannot be sent in a header.')
      .meta({ writeOnly: true })
      .optional()
      .describe(
        'The literal value of the `Authorization` header. Left out: that of the abonnement stays; there must be one, unless the authorization is `verbatim` already.',
      ),
  })
  .meta({ id: 'VerbatimAuthorizationInput', description: 'The `auth` of the abonnement.' });

export const credentialChangesInput = z
  .strictObject({
    authorization: z
      .discriminatedUnion('kind', [verbatimInput, zgwInput, oauth2Input])
      .describe('The source of the `Authorization` header of each call.'),
    tls: identityInput.nullable().describe('For the receiver. null: none of its own.'),
    headers: headersInput(headerText)
      .nullable()
      .describe(
        `Sent with each call; never shown but for their names. Names and values together have at most ${maxHeadersLength} characters. null: none.`,
      )
      .meta({ writeOnly: true }),
  })
  .partial()
  .meta({
    id: 'CredentialChanges',
    description: 'A part that is left out stays as it is; one that is given is replaced as a whole.',
  });

export type CredentialChanges = Partial<CredentialParts> & {
  /** Of verbatim authorization. */
  auth?: string;
};

/**
 * @param nowMs milliseconds since 1970
 * @throws {ValidationProblem} naming every wrong field at once
 */
export function readCredentialChanges(input: unknown, nowMs: number): CredentialChanges {
  const { authorization, tls, headers } = checkInput(credentialChangesInput, input);
  const wrong = [
    ...(authorization?.kind === 'oauth2' ? checkIdentity(authorization.tokenTls, 'authorization.tokenTls', nowMs) : []),
    ...checkIdentity(tls, 'tls', nowMs),
    ...below('headers', checkHeaders(headers ?? {})),
    ...(lengthOf(headers ?? {}) > maxHeadersLength ? [tooLong] : []),
  ];
  if (wrong.length > 0) throw new ValidationProblem(wrong);
  const changes: CredentialChanges = {};
  if (authorization?.kind === 'verbatim') {
    changes.authorization = { kind: 'verbatim' };
    if (authorization.auth !== undefined) changes.auth = authorization.auth;
  } else if (authorization?.kind === 'oauth2') {
    changes.authorization = { ...authorization, tokenTls: unlessEmpty(authorization.tokenTls) };
  } else if (authorization) changes.authorization = authorization;
  if (tls !== undefined) changes.tls = unlessEmpty(tls);
  if (headers !== undefined) changes.headers = headers && headersToStore(headers);
  return changes;
}

const lengthOf = (headers: Readonly<Record<string, string>>): number =>
  Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
const tooLong: InvalidParam = {
  name: 'headers',
  code: 'max_length',
  reason: `Names and values together have more than ${maxHeadersLength} characters.`,
};

function isTokenUrl(value: string): boolean {
  if (!/^https?:\/\/[^\s\p{Cc}\\/]/iu.test(value) || !URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && hash === '';
}

const checkIdentity = (tls: TlsIdentity | null | undefined, name: string, nowMs: number) =>
  tls ? below(name, checkTls(tls, nowMs)) : [];

const below = (name: string, found: InvalidParam[]): InvalidParam[] =>
  found.map((param) => ({ ...param, name: `${name}.${param.name}` }));

const unlessEmpty = (tls: TlsIdentity | null): TlsIdentity | null =>
  tls && Object.values(tls).some((part) => part !== undefined) ? tls : null;

/** Names in lower case, and values without space around them. Null: there are none. */
export function headersToStore(headers: Readonly<Record<string, string>>): Record<string, string> | null {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()] as const);
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

const certificateOutput = z.strictObject({
  subject: z.string(),
  fingerprint: z.string().describe('SHA-256, in hex with colons.'),
  expiresAt: z.iso.datetime(),
});

const identityOutput = z.strictObject({
  certificate: certificateOutput.nullable().describe('Its own; its key is not shown.'),
  authority: z.array(certificateOutput),
});

/** Without a secret in it: of each it says at most that there is one. */
export const credentialsOutput = z
  .strictObject({
    kind: z.enum(['verbatim', 'zgw', 'oauth2']).describe('The source of the `Authorization` header.'),
    clientId: z.string().nullable().describe('null: with `verbatim`.'),
    userId: z.string().nullable().describe('With `zgw`.'),
    userRepresentation: z.string().nullable().describe('With `zgw`.'),
    tokenUrl: z.string().nullable().describe('With `oauth2`.'),
    scope: z.string().nullable().describe('With `oauth2`.'),
    clientAuthentication: z
      .literal([...clientAuthentications, null])
      .meta({ type: 'string', nullable: true })
      .describe('With `oauth2`.'),
    tls: identityOutput.nullable(),
    tokenTls: identityOutput.nullable().describe('With `oauth2`, for the token endpoint.'),
    headers: z.array(z.string()).describe('The names of its own headers.'),
    unreadable: z
      .string()
      .nullable()
      .describe('Why the process that answers cannot decrypt its secrets, so that nothing is sent. null: it can.'),
  })
  .meta({ id: 'Credentials', description: 'The credentials, without their secrets: those are never shown.' });

export function credentialsToShow(
  credentials: Credentials,
  unreadable: string | null,
): z.output<typeof credentialsOutput> {
  const { kind, tls, headers = {} } = credentials;
  const zgw = kind === 'zgw' ? credentials : undefined;
  const oauth2 = kind === 'oauth2' ? credentials : undefined;
  return {
    kind,
    clientId: kind === 'verbatim' ? null : credentials.clientId,
    userId: zgw?.userId ?? null,
    userRepresentation: zgw?.userRepresentation ?? null,
    tokenUrl: oauth2?.tokenUrl ?? null,
    scope: oauth2?.scope ?? null,
    clientAuthentication: oauth2?.clientAuthentication ?? null,
    tls: tls ? identityToShow(tls) : null,
    tokenTls: oauth2?.tokenTls ? identityToShow(oauth2.tokenTls) : null,
    headers: Object.keys(headers),
    unreadable,
  };
}

function identityToShow({ certificate, authority }: TlsIdentity): z.output<typeof identityOutput> {
  const shown = (pem: string | undefined) =>
    (pem === undefined ? [] : (certificatesIn(pem) ?? [])).map(({ subject, fingerprint256, validTo }) => ({
      subject: subject.replaceAll('\n', ', '),
      fingerprint: fingerprint256,
      expiresAt: new Date(validTo).toISOString(),
    }));
  return { certificate: shown(certificate)[0] ?? null, authority: shown(authority) };
}
