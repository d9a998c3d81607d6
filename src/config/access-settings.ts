import * as z from 'zod';
import { commaSeparated, issuer, rolesByClaim, url, wholeNumber } from './setting-types.js';

/** Of those who call Heraut, and of the secrets that are kept. */
export const accessSettings = {
  SUPERUSER_CLIENT_ID: z
    .string()
    .max(255)
    .default('heraut')
    .describe('Client id that passes every scope check and may use the admin API.'),
  SUPERUSER_SECRET: z
    .string()
    .optional()
    .describe(
      'Secret of the superuser (HS256). Not set: there is no superuser, except that the embedded database makes one secret and keeps it in `DATA_DIR`.',
    ),
  SECRET_KEYS: commaSeparated
    .pipe(
      z
        .array(z.string().regex(/^[\w-]{1,32}:[A-Za-z0-9+/_-]{43}=?$/, { error: 'must be `id:base64 of 32 bytes`' }))
        .min(1),
    )
    .optional()
    .describe(
      'Keys that secrets are encrypted with in the database, comma-separated, each `id:base64 of 32 bytes`: the first one encrypts, all decrypt. Not set: secrets are readable in the database; the embedded database makes a key and keeps it in `DATA_DIR`.',
    ),
  SECRET_KEYS_FILE: z
    .string()
    .optional()
    .describe('A file with these keys, instead of `SECRET_KEYS`; they may be on lines of their own.'),
  CONFIG_FILE: z
    .string()
    .optional()
    .describe(
      'A file in YAML with applications, channels, subscriptions, alert rules and the retry policy, applied at every start before anything else is done; one that is wrong ends the start. Each process that is started applies it, and so writes back what was changed by the API meanwhile; one that its supervisor starts again does not. Not set: none. See docs/configuration-file.md.',
    ),
  JWT_EXPIRY: wholeNumber(1, 31_536_000)
    .default(3600)
    .describe('Seconds after its `iat` that a token is refused, also when its `exp` is later.'),
  TIME_LEEWAY: wholeNumber(0, 3600)
    .default(0)
    .describe(
      'Seconds of clock difference forgiven in `iat`, `exp`, `nbf` and `aanmaakdatum`. An `iat` may lie a minute further ahead, an `aanmaakdatum` half a second.',
    ),
  SECRET_MIN_BYTES: wholeNumber(1, 255)
    .default(16)
    .describe(
      'Bytes that a secret given to an application must have at least. 16 random bytes are 128 bits; RFC 7518 demands 32 for HS256, which many secrets that are carried over from elsewhere do not have. Shorter ones that are there already go on working, and are counted in one warning at the start.',
    ),
  REFUSALS_PER_MINUTE: wholeNumber(1, 1_000_000)
    .default(100)
    .describe(
      'Requests refused for their token or its scope (403) in one minute, for one address and for one application, after which further ones are answered 429 with `Retry-After`. Other requests are not limited. Counted by all processes together with `REDIS_URL`, otherwise by each.',
    ),

  CONSOLE_URL: url('http:', 'https:')
    .refine((text) => text === undefined || /^[^?#]*[^/]\/console$/.test(text), { error: 'must end in /console' })
    .describe(
      'Address of the console as browsers know it, such as `https://heraut.example.org/console`. Needed where a proxy removes a prefix of the path, or `TRUST_FORWARDED_HEADERS` is off behind a proxy: OpenID Connect leads back to it, cookies are for it, and alerts name it. Not set: what the request says, and `PATH_PREFIX`.',
    ),
  OIDC_ISSUER: issuer.describe(
    'Provider of OpenID Connect by which users sign in to the console: its issuer, below which it has `/.well-known/openid-configuration`. Not set: they sign in with the client id and secret of a superuser.',
  ),
  OIDC_CLIENT_ID: z.string().optional().describe('Client id of Heraut at this provider. Needed with `OIDC_ISSUER`.'),
  OIDC_CLIENT_SECRET: z.string().optional().describe('Secret of that client. Needed with `OIDC_ISSUER`.'),
  OIDC_CLIENT_AUTH: z
    .enum(['auto', 'basic', 'post'])
    .default('auto')
    .describe(
      'How the secret is sent to the provider: in `Authorization` (`basic`), or in the body (`post`). `auto`: as the provider says, and `post` where it takes both; some take for each client only the one that is set there.',
    ),
  OIDC_SCOPES: z
    .string()
    .regex(/^(.* )?openid( .*)?$/, { error: 'must have `openid` among the scopes' })
    .default('openid profile email')
    .describe('Scopes that it is asked for, with spaces between them.'),
  OIDC_ROLE_CLAIM: z
    .string()
    .default('roles')
    .describe(
      'The claim with the roles of a user: a text or a list of texts, in the ID token or at the userinfo endpoint. `realm_access.roles`: a claim within a claim.',
    ),
  OIDC_ROLES: rolesByClaim
    .default({ viewer: ['viewer'], operator: ['operator'], administrator: ['administrator'] })
    .describe(
      'JSON object, role → the values of that claim that give it; `*`: everybody whom the provider lets in. The highest counts; nobody without one gets in.',
    ),
  OIDC_LABEL: z
    .string()
    .min(1)
    .max(60)
    .default('single sign-on')
    .describe('Name of the provider on the button for signing in.'),
  SESSION_IDLE_SEC: wholeNumber(60, 2_592_000)
    .default(3600)
    .describe('Seconds after which a session in the console ends that is not used. Open pages do not count as use.'),
  SESSION_MAX_SEC: wholeNumber(60, 2_592_000)
    .default(43_200)
    .describe('Seconds after which a session ends, however much it is used.'),
};
