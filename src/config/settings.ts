import * as z from 'zod';
import {
  addressOrRange,
  commaSeparated,
  databaseUrl,
  hostAndPort,
  hostName,
  isPercentEncoded,
  issuer,
  mailAddress,
  mailSender,
  origin,
  ports,
  rolesByClaim,
  secondsPerCustomer,
  statuses,
  url,
  webhookSecret,
  wholeNumber,
} from './setting-types.js';

/**
 * Every setting Heraut reads, in the order in which an operator needs them. `docs/configuration.md` is generated from the
 * descriptions below, so each says unit and consequence. An empty value counts as not set.
 */
export const roles = ['api', 'worker', 'dispatcher'] as const;
export type Role = (typeof roles)[number];

export const settingsSchema = z
  .object({
    HOST: z.string().default('127.0.0.1').describe('Address to listen on. `0.0.0.0` in a container.'),
    PORT: wholeNumber(0, 65535).default(8000).describe('Port to listen on; 0 for any free one.'),
    ADMIN_PORT: wholeNumber(0, 65535)
      .optional()
      .describe(
        'A port of their own for `/admin`, `/console`, `/docs` and `/metrics`, which `PORT` then answers with 404; both serve `/` and `/health`. 0 for any free one. Not set: `PORT` serves all.',
      ),
    ADMIN_HOST: z.string().optional().describe('Address to listen on with `ADMIN_PORT`. Not set: `HOST`.'),
    ROLES: commaSeparated
      .pipe(
        z
          .array(z.enum(roles))
          .min(1)
          .overwrite((given) => [...new Set(given)]),
      )
      .default([...roles])
      .describe(
        'Roles of this process, comma-separated: `api`, `worker`, `dispatcher`. Without `api` it serves `/`, `/health` and `/metrics` only.',
      ),
    PROCESSES: z
      .union([z.literal('auto'), wholeNumber(1, 256)], { error: 'must be `auto` or a whole number from 1 to 256' })
      .default(1)
      .describe(
        'Processes that share the port and have these roles, started and restarted by the one that was started; with RabbitMQ only the first of them has the role `dispatcher`. `auto`: one for each core and 512 MB of memory, at most 13 unless `DATABASE_POOL_SIZE` is set, and one on the embedded database. `npm start` sets `auto`.',
      ),

    DATABASE_URL: databaseUrl.describe(
      'PostgreSQL 15 or newer, the ledger. Not set: an embedded database in `DATA_DIR` (one process, no fsync).',
    ),
    AMQP_URL: url('amqp:', 'amqps:').describe(
      'RabbitMQ, which moves the work. Not set: an in-process queue. `?heartbeat=` behind it: seconds, in place of 10; RabbitMQ takes the chunks of a process from which nothing has come for two to three times as long.',
    ),
    REDIS_URL: url('redis:', 'rediss:').describe(
      'Redis, which keeps locks and seals, and what a delivery does at this moment (`live`). Not set: locks and seals are in Postgres, and `live` is known only to the process that sends the delivery, so that another one answers `null`.',
    ),
    DATA_DIR: z.string().default('./data').describe('Directory of the embedded database. Unused with `DATABASE_URL`.'),
    DATABASE_POOL_SIZE: wholeNumber(2, 200)
      .default(10)
      .describe(
        'Postgres connections of one process: this many for the hot path, as many again for the rest, one for health checks, and now and then two for migrations and partitions. Not set, and more than four `PROCESSES`: as many as keep all of them within the 97 that Postgres allows by default, at least 2.',
      ),
    DATABASE_TIMEOUT: z.coerce
      .number()
      .min(0.1)
      .max(600)
      .default(15)
      .describe(
        'Seconds one statement may take; then Postgres ends it. A publisher waits at most 5/3 of it and a second, then publishing answers 503.',
      ),
    QUEUE_PREFIX: z
      .string()
      .regex(/^[\w.-]{1,80}$/)
      .default('heraut')
      .describe('First part of the names of the RabbitMQ queues, so that several brokers can share one RabbitMQ.'),
    QUEUE_MAX_LENGTH: wholeNumber(10, 10_000_000)
      .default(50_000)
      .describe(
        'Messages (of up to 64 deliveries) a queue holds before it refuses; refused deliveries wait in the ledger. Counts when the queue is created. Without RabbitMQ the queue is in memory, and holds at most 64 MB per lane.',
      ),

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
        'A file in YAML with applications, channels, subscriptions, alert rules and the retry policy, applied at every start before anything else is done; one that is wrong ends the start. Of several processes one applies it, and none that its supervisor starts again. Not set: none. See docs/configuration-file.md.',
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
        'Address of the console as browsers know it, such as `https://heraut.example.org/console`. Needed where a proxy removes a prefix of the path, or `TRUST_FORWARDED_HEADERS` is off behind a proxy: OpenID Connect leads back to it, and cookies are for it. Not set: what the request says, and `PATH_PREFIX`.',
      ),
    OIDC_ISSUER: issuer.describe(
      'Provider of OpenID Connect by which users sign in to the console: its issuer, below which it has `/.well-known/openid-configuration`. Not set: they sign in with the client id and secret of a superuser.',
    ),
    OIDC_CLIENT_ID: z.string().optional().describe('Client id of Heraut at this provider. Needed with `OIDC_ISSUER`.'),
    OIDC_CLIENT_SECRET: z.string().optional().describe('Secret of that client. Needed with `OIDC_ISSUER`.'),
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

    NOTIFICATION_REQUESTS_TIMEOUT: z.coerce
      .number()
      .min(0.1)
      .max(300)
      .default(10)
      .describe(
        'Seconds one call to a receiver may take: connecting, sending, and the headers of the answer. A subscription may have a time of its own.',
      ),
    MAX_IN_FLIGHT: wholeNumber(1, 10_000)
      .default(512)
      .describe(
        'Deliveries that one worker sends at once; a quarter of these places is for all endpoints together that have not answered well lately. Further work waits in memory or in the queue.',
      ),
    MAX_IN_FLIGHT_PER_ENDPOINT: wholeNumber(1, 10_000)
      .default(128)
      .describe(
        'Most of these calls that one callback URL may have, for each TLS identity that it is called with; further work waits in memory, and beyond that in the ledger. Divided by `PROCESSES`, with at least one for each.',
      ),
    CIRCUIT_BREAKER_FAILURES: wholeNumber(1, 1000)
      .default(5)
      .describe(
        'Deliveries that fail one after the other within 30 s before an endpoint is parked: what is for it is held until a probe succeeds. No answer counts for its origin (scheme, host and port), 429 and 5xx for its URL, as it is called with that TLS identity, and so does a certificate that either side refuses. Each worker counts for itself.',
      ),
    FINAL_STATUSES: statuses
      .default([410, 415])
      .describe(
        'HTTP statuses, comma-separated, after which a delivery is not tried again. 410 also disables its subscription, unless it is left out here.',
      ),
    TEST_CALLBACK_AUTH: z
      .stringbool()
      .default(true)
      .describe('Whether registering a callback demands that it answers 401 or 403 to a call without `Authorization`.'),
    SIGN_BY_DEFAULT: z
      .stringbool()
      .default(false)
      .describe(
        'Whether a new abonnement gets a signing key (`v1`) at once. Its secret is in the header `Signing-Secret` of the 201. Every other subscription is signed once it is given a key.',
      ),
    CALLBACK_NETWORKS: z
      .enum(['any', 'public'])
      .optional()
      .describe(
        '`public` refuses callbacks at loopback, private and other special addresses, checked at every connect; `any` only link-local ones and those at which clouds hand out credentials. Not set: `public`, and on the embedded database loopback too.',
      ),
    CALLBACK_ALLOWED_NETWORKS: commaSeparated
      .pipe(z.array(addressOrRange))
      .default([])
      .describe(
        'CIDR ranges or addresses, comma-separated, that callbacks may use although they are not public. An address refused even with `CALLBACK_NETWORKS=any` is opened only by a range within it, or by the address itself.',
      ),
    CALLBACK_SCHEMES: commaSeparated
      .pipe(z.array(z.enum(['http', 'https'])).min(1))
      .default(['http', 'https'])
      .describe('Schemes that callbacks may have; `https` refuses the others.'),
    CALLBACK_PORTS: ports
      .optional()
      .describe('Ports and ranges of ports, comma-separated, that callbacks may have: `443,8000-8999`. Not set: any.'),
    EGRESS_PROXY_URL: url('http:', 'https:')
      .refine(isPercentEncoded, { error: 'has a user or password that is not percent-encoded' })
      .describe(
        'HTTP proxy, with user and password where it wants them, through which callbacks are called: by CONNECT, to the address that was checked. Not set: none.',
      ),
    EGRESS_PROXY_EXCEPTIONS: commaSeparated
      .pipe(z.array(z.union([addressOrRange, hostName], { error: 'must be host names, CIDR ranges or addresses' })))
      .default([])
      .describe(
        'Host names (each with all below it), CIDR ranges and addresses, comma-separated, that are called without the proxy; loopback always is.',
      ),

    UV_THREADPOOL_SIZE: wholeNumber(1, 1024)
      .default(4)
      .describe(
        'Threads of each process, which Node itself reads when it starts; half of them look up the names of receivers. With few, names that no name server answers for keep new connections to others waiting. `npm start`, the image and `PROCESSES` give 16, unless it is set.',
      ),

    TTL_LOCK_TIME_LIMIT_MS: wholeNumber(1000, 3_600_000)
      .default(120_000)
      .describe('Milliseconds a delivery stays locked by a worker that no longer extends the lock.'),
    TTL_IDEMPOTENCY_PER_CUSTOMER_SEC: secondsPerCustomer
      .default({})
      .describe(
        'JSON object, client id of the owner → seconds the outcome of its deliveries is remembered, so that a repeated message is filtered; `*` is all others. Not named: 21600 (six hours).',
      ),
    AT_LEAST_ONCE_SENDING_CUSTOMERS: commaSeparated
      .default(['*'])
      .describe(
        'Client ids, comma-separated, whose subscriptions are delivered at least once; `*` is all. The others get at most once. A subscription may have a guarantee of its own.',
      ),
    IDEMPOTENCY_KEY_TTL_SEC: wholeNumber(60, 2_592_000)
      .default(604_800)
      .describe(
        'Seconds an `Idempotency-Key`, or the key of a PUT, is remembered, counted from when its notification is due. At most `RETENTION_DAYS`.',
      ),
    DELIVERY_LEASE_MS: wholeNumber(2000, 86_400_000)
      .default(180_000)
      .describe(
        'Milliseconds after which a delivery that a worker has in hand, and has not settled, is handed out again. Must exceed lock + request timeout + 10 s, which limits the timeout of a subscription too.',
      ),
    DISPATCH_INTERVAL_MS: wholeNumber(10, 60_000)
      .default(250)
      .describe('Milliseconds between two looks of the dispatcher for deliveries that are due.'),
    RETENTION_DAYS: wholeNumber(2, 3650)
      .default(30)
      .describe(
        'Days that notifications, deliveries and attempts are kept; a day with an unfinished delivery, or with one that became a dead letter in the last week, stays.',
      ),
    BODY_RETENTION_DAYS: wholeNumber(1, 3650)
      .optional()
      .describe(
        'Days that the bodies of notifications are kept, and what receivers answered; a channel may have days of its own. One with an unfinished delivery is kept until that has ended. Not set: as long as the rows.',
      ),
    EXPORT_DIR: z
      .string()
      .optional()
      .describe(
        'Directory that each day is written to before it is dropped, as `heraut-<day>.ndjson.gz`; of every machine with the role `dispatcher`. A day that cannot be exported is kept. Not set: nothing is exported.',
      ),
    AUDIT_RETENTION_DAYS: wholeNumber(1, 36_500)
      .default(730)
      .describe(
        'Days that entries of the audit log are kept at least; they are dropped by whole months. See `GET /admin/v1/audit`.',
      ),

    ALERT_WEBHOOK_URL: url('http:', 'https:').describe(
      'Where alerts are posted. It may be on a private network, unlike callbacks; through `EGRESS_PROXY_URL` where there is one. Not set: nowhere.',
    ),
    ALERT_WEBHOOK_SECRET: webhookSecret
      .optional()
      .describe(
        'Secret that these posts are signed with (Standard Webhooks `v1`): base64 of 24 to 64 bytes, with `whsec_` in front or without. Needed with `ALERT_WEBHOOK_URL`.',
      ),
    ALERT_MAIL_TO: commaSeparated
      .pipe(z.array(mailAddress))
      .default([])
      .describe('Mail addresses of operators, comma-separated, that alerts are sent to. Needs `EMAIL_HOST`.'),
    EMAIL_HOST: z
      .union([hostName, z.ipv4(), z.ipv6()], { error: 'must be a host name or an address' })
      .optional()
      .describe(
        'SMTP server that alerts are sent through, to operators and to owners of subscriptions. Not set: no mail.',
      ),
    EMAIL_PORT: wholeNumber(1, 65535)
      .default(587)
      .describe('Its port. With 465 the connection begins with TLS; with any other `EMAIL_USE_TLS` counts.'),
    EMAIL_USE_TLS: z
      .stringbool()
      .default(true)
      .describe(
        'Whether nothing is sent before STARTTLS, and nothing at all to a server that does not offer it or whose certificate is not trusted. `false`: mail and password go in plain text.',
      ),
    EMAIL_HOST_USER: z.string().optional().describe('User at the SMTP server. Not set: it wants none.'),
    EMAIL_HOST_PASSWORD: z.string().optional().describe('Password of `EMAIL_HOST_USER`.'),
    DEFAULT_FROM_EMAIL: mailSender
      .optional()
      .describe('Sender of mail: an address, or `Name <address>`. Needed with `EMAIL_HOST`.'),

    BODY_LIMIT_BYTES: wholeNumber(1024, 104_857_600)
      .default(1_048_576)
      .describe('Largest request body accepted, in bytes; a larger one gets 413.'),
    SUBSCRIPTIONS_PER_APPLICATION: wholeNumber(1, 100_000_000)
      .default(150_000)
      .describe(
        'Subscriptions that one application may have; another one is refused with 409. Each takes half a kilobyte of the memory of every process, and what the next setting counts.',
      ),
    SUBSCRIPTION_BYTES_PER_APPLICATION: wholeNumber(1_048_576, 1_099_511_627_776)
      .default(134_217_728)
      .describe(
        'Bytes of the memory of every process, roughly, that the filters, callbacks, credentials and signing keys of the subscriptions of one application may take; 409 for a subscription, or a change of one, that takes more. An entry takes 500 bytes, a filter 250, a signing key 800, and twice as many bytes as their texts have characters. With the default, a process with 256 MB of heap starts whatever one application has.',
      ),
    CHANNELS_MAX: wholeNumber(1, 1_000_000)
      .default(1000)
      .describe(
        'Channels that there may be, whoever makes them; another one is refused with 409. An operator can remove those that no subscription names.',
      ),
    CHANNEL_BYTES_MAX: wholeNumber(1_048_576, 1_099_511_627_776)
      .default(16_777_216)
      .describe(
        'Bytes of the memory of every process, roughly, that all channels together may take; 409 for a channel, or a change of one, that takes more. One takes 1000 bytes, 150 for each filter, and twice the bytes of their names.',
      ),
    DOCUMENTATION_LINK_CHECK: z
      .enum(['off', 'warn', 'enforce'])
      .default('off')
      .describe("Whether a channel's `documentatieLink` is fetched and must answer 200."),
    TRUST_FORWARDED_HEADERS: z
      .stringbool()
      .default(false)
      .describe(
        'Build URLs from `X-Forwarded-Host` and `X-Forwarded-Proto`, and take the last address of `X-Forwarded-For` for that of the caller. Only behind a proxy that sets all three.',
      ),
    PATH_PREFIX: z
      .string()
      .regex(/^((\/[\w.~-]+)+)?$/, { error: 'must be a path such as /nrc, without a slash at the end' })
      .default('')
      .describe(
        'Beginning of the path that a proxy in front removes, such as `/nrc`: URLs in answers begin with it, and so does the console, unless `CONSOLE_URL` says where it is. Not set: none.',
      ),
    ALLOWED_HOSTS: commaSeparated
      .pipe(z.array(hostAndPort))
      .default([])
      .describe(
        'Hosts, comma-separated, that a request may name, and that URLs in answers are built from; without a port: any port; `*.example.org`: every name below it. A request for another host is answered 421, except for `/health` and `/metrics`. Not set: any host, so let a proxy in front fix it.',
      ),
    CORS_ALLOWED_ORIGINS: commaSeparated
      .pipe(z.array(origin))
      .default([])
      .describe(
        'Origins, comma-separated, whose pages may call the APIs from a browser (CORS); `*`: all. Not set: none.',
      ),
    OTEL_EXPORTER_OTLP_ENDPOINT: url('http:', 'https:').describe(
      'Collector of OpenTelemetry that gets traces, over OTLP/HTTP, at `/v1/traces` below this URL. Headers it wants: `OTEL_EXPORTER_OTLP_HEADERS`, as OpenTelemetry has it. Not set: no traces.',
    ),
    OTEL_SERVICE_NAME: z.string().default('heraut').describe('`service.name` of these traces.'),
    OTEL_TRACES_SAMPLER: z
      .enum([
        'always_on',
        'always_off',
        'traceidratio',
        'parentbased_always_on',
        'parentbased_always_off',
        'parentbased_traceidratio',
      ])
      .default('parentbased_always_on')
      .describe(
        'Which publications are traced. `parentbased_…`: as the `traceparent` of their publisher says, and those without one by the rest of the name; the others ask no publisher.',
      ),
    OTEL_TRACES_SAMPLER_ARG: z.coerce
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe('For `…traceidratio`: the part of the publications that is traced; 0.01 is one in a hundred.'),
    LOG_LEVEL: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info')
      .describe('Least severe log event written. Events are JSON, one a line, on standard output.'),
  })
  .superRefine((settings, context) => {
    if (settings.ADMIN_PORT === settings.PORT && settings.PORT !== 0) {
      context.addIssue({ code: 'custom', path: ['ADMIN_PORT'], message: 'must be another port than PORT' });
    }
    const timeoutMs = settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000;
    if (timeoutMs >= callMsBound(settings)) {
      const shortest = settings.TTL_LOCK_TIME_LIMIT_MS + timeoutMs + leaseSlackMs;
      context.addIssue({
        code: 'custom',
        path: ['DELIVERY_LEASE_MS'],
        message: `must exceed TTL_LOCK_TIME_LIMIT_MS + NOTIFICATION_REQUESTS_TIMEOUT + 10 s = ${shortest} ms, or a delivery could be sent twice`,
      });
    }
    if (settings.IDEMPOTENCY_KEY_TTL_SEC > settings.RETENTION_DAYS * 86_400) {
      context.addIssue({
        code: 'custom',
        path: ['IDEMPOTENCY_KEY_TTL_SEC'],
        message: `must not exceed RETENTION_DAYS = ${settings.RETENTION_DAYS * 86_400} s, or a repeated request would be answered with a notification that is no longer kept`,
      });
    }
    if (settings.SESSION_IDLE_SEC > settings.SESSION_MAX_SEC) {
      context.addIssue({ code: 'custom', path: ['SESSION_IDLE_SEC'], message: 'must not exceed SESSION_MAX_SEC' });
    }
    if (settings.SECRET_KEYS && settings.SECRET_KEYS_FILE) {
      context.addIssue({ code: 'custom', path: ['SECRET_KEYS_FILE'], message: 'must not be set beside SECRET_KEYS' });
    }
    if (!settings.AMQP_URL && settings.ROLES.includes('dispatcher') !== settings.ROLES.includes('worker')) {
      context.addIssue({
        code: 'custom',
        path: ['ROLES'],
        message: 'without AMQP_URL the queue is in-process, so dispatcher and worker must run in the same process',
      });
    }
    if (!settings.DATABASE_URL && settings.ROLES.length < roles.length) {
      context.addIssue({
        code: 'custom',
        path: ['ROLES'],
        message: 'without DATABASE_URL only one process can open the database, so it must have all roles',
      });
    }
    if (!settings.DATABASE_URL && settings.PROCESSES !== 'auto' && settings.PROCESSES > 1) {
      context.addIssue({
        code: 'custom',
        path: ['PROCESSES'],
        message: 'without DATABASE_URL only one process can open the database',
      });
    }
  });

export type Settings = z.output<typeof settingsSchema>;

/** The first setting of each pair makes no sense, or would be left unsigned, without the second. */
const needs = [
  ['ALERT_WEBHOOK_URL', 'ALERT_WEBHOOK_SECRET'],
  ['ALERT_MAIL_TO', 'EMAIL_HOST'],
  ['EMAIL_HOST', 'DEFAULT_FROM_EMAIL'],
  ['EMAIL_HOST_USER', 'EMAIL_HOST_PASSWORD'],
  ['OIDC_ISSUER', 'OIDC_CLIENT_ID'],
  ['OIDC_ISSUER', 'OIDC_CLIENT_SECRET'],
  ['OIDC_CLIENT_ID', 'OIDC_ISSUER'],
  ['OIDC_CLIENT_SECRET', 'OIDC_ISSUER'],
] as const;

/** Between the end of a lock, or of a call, and the end of the lease. */
const leaseSlackMs = 10_000;

/**
 * A call takes less than so many milliseconds: the lease of its delivery outlasts a lock that was left behind and the call, or the
 * delivery could be sent twice.
 */
export const callMsBound = (settings: { DELIVERY_LEASE_MS: number; TTL_LOCK_TIME_LIMIT_MS: number }): number =>
  settings.DELIVERY_LEASE_MS - settings.TTL_LOCK_TIME_LIMIT_MS - leaseSlackMs;

export class InvalidSettings extends Error {}

/**
 * @throws {InvalidSettings} naming every wrong setting at once, but for those that are wrong only beside another one's value: they are
 * compared when each is right by itself
 */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name in settingsSchema.shape && value !== ''),
  );
  const parsed = settingsSchema.safeParse(set);
  const missing = needs.filter(([name, needed]) => set[name] !== undefined && set[needed] === undefined);
  if (parsed.success && missing.length === 0) return parsed.data;
  const lines = [
    ...(parsed.error?.issues ?? []).map((issue) => `  ${issue.path.join('.') || 'settings'}: ${issue.message}`),
    ...missing.map(([name, needed]) => `  ${needed}: is needed with ${name}`),
  ];
  throw new InvalidSettings(
    `Heraut cannot start, these settings are wrong (see docs/configuration.md):\n${lines.join('\n')}`,
  );
}
