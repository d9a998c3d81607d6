import { z } from 'zod';

/**
 * Every setting Heraut reads, in the order in which an operator needs them. `docs/configuration.md` is generated from the
 * descriptions below, so each says unit and consequence. An empty value counts as not set.
 */
const roles = ['api', 'worker', 'dispatcher'] as const;
export type Role = (typeof roles)[number];

const wholeNumber = (min: number, max: number) => z.coerce.number().int().min(min).max(max);
const url = (...protocols: string[]) =>
  z
    .string()
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), {
      error: `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    })
    .optional();
const secondsPerCustomer = z.string().transform((text, context) => {
  const parsed = z.record(z.string(), z.number().int().min(60).max(2_592_000)).safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  context.addIssue({
    code: 'custom',
    message: 'must be a JSON object, client id → seconds from 60 to 2592000 (30 days)',
  });
  return z.NEVER;
});
const commaSeparated = z.string().transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

const statuses = commaSeparated
  .pipe(z.array(z.string().regex(/^[345]\d\d$/, { error: 'must be HTTP statuses from 300 to 599' })).min(1))
  .transform((texts) => texts.map(Number));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema
  }
}

export const settingsSchema = z
  .object({
    HOST: z.string().default('127.0.0.1').describe('Address to listen on. `0.0.0.0` in a container.'),
    PORT: wholeNumber(0, 65535).default(8000).describe('Port to listen on; 0 for any free one.'),
    ROLES: commaSeparated
      .pipe(z.array(z.enum(roles)).min(1))
      .default([...roles])
      .describe(
        'Roles of this process, comma-separated: `api`, `worker`, `dispatcher`. Without `api` it serves `/`, `/health` and `/metrics` only.',
      ),
    PROCESSES: z
      .union([z.literal('auto'), wholeNumber(1, 256)], { error: 'must be `auto` or a whole number from 1 to 256' })
      .default(1)
      .describe(
        'Processes that share the port and have these roles, started and restarted by the one that was started; with RabbitMQ only the first of them has the role `dispatcher`. `auto`: one for each core and 512 MB of memory, at most 16 unless `DATABASE_POOL_SIZE` is set, and one on the embedded database. `npm start` sets `auto`.',
      ),

    DATABASE_URL: url('postgres:', 'postgresql:').describe(
      'PostgreSQL 15 or newer, the ledger. Not set: an embedded database in `DATA_DIR` (one process, no fsync).',
    ),
    AMQP_URL: url('amqp:', 'amqps:').describe('RabbitMQ, which moves the work. Not set: an in-process queue.'),
    REDIS_URL: url('redis:', 'rediss:').describe('Redis, which keeps locks and seals. Not set: they are in Postgres.'),
    DATA_DIR: z.string().default('./data').describe('Directory of the embedded database. Unused with `DATABASE_URL`.'),
    DATABASE_POOL_SIZE: wholeNumber(2, 200)
      .default(10)
      .describe(
        'Postgres connections of one process: this many for the hot path, as many again for the rest, and now and then two for migrations and partitions. Not set, and more than four `PROCESSES`: as many as keep all of them within the 97 that Postgres allows by default, at least 2.',
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
        'Messages (of up to 64 deliveries) a queue holds before it refuses; refused deliveries wait in the ledger. Counts when the queue is created.',
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
    JWT_EXPIRY: wholeNumber(1, 31_536_000)
      .default(3600)
      .describe('Seconds after its `iat` that a token is refused, also when its `exp` is later.'),
    TIME_LEEWAY: wholeNumber(0, 3600)
      .default(0)
      .describe('Seconds of clock difference forgiven in `iat`, `exp`, `nbf` and `aanmaakdatum`.'),

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
        'Most of these calls that one callback URL may have; further work waits in memory, and beyond that in the ledger. Divided by `PROCESSES`, with at least one for each.',
      ),
    CIRCUIT_BREAKER_FAILURES: wholeNumber(1, 1000)
      .default(5)
      .describe(
        'Deliveries that fail one after the other within 30 s before an endpoint is parked: what is for it is held until a probe succeeds. No answer counts for its origin (scheme, host and port), 429 and 5xx for its URL. Each worker counts for itself.',
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
    CALLBACK_NETWORKS: z
      .enum(['any', 'public'])
      .default('any')
      .describe(
        '`public` refuses callbacks at loopback, private and other special addresses, checked at every connect.',
      ),
    CALLBACK_ALLOWED_NETWORKS: commaSeparated
      .pipe(
        z.array(z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], { error: 'must be CIDR ranges or addresses' })),
      )
      .default([])
      .describe('CIDR ranges, comma-separated, that callbacks may use although `CALLBACK_NETWORKS=public`.'),

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
      .describe('Days that notifications, deliveries and attempts are kept; a day with an unfinished delivery stays.'),
    AUDIT_RETENTION_DAYS: wholeNumber(1, 36_500)
      .default(730)
      .describe(
        'Days that entries of the audit log are kept at least; they are dropped by whole months. See `GET /admin/v1/audit`.',
      ),

    BODY_LIMIT_BYTES: wholeNumber(1024, 104_857_600)
      .default(1_048_576)
      .describe('Largest request body accepted, in bytes; a larger one gets 413.'),
    DOCUMENTATION_LINK_CHECK: z
      .enum(['off', 'warn', 'enforce'])
      .default('off')
      .describe("Whether a channel's `documentatieLink` is fetched and must answer 200."),
    TRUST_FORWARDED_HEADERS: z
      .stringbool()
      .default(false)
      .describe('Build URLs from `X-Forwarded-Host` and `X-Forwarded-Proto`. Only behind a proxy that sets both.'),
    LOG_LEVEL: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
      .default('info')
      .describe('Least severe log event written. Events are JSON, one a line, on standard output.'),
  })
  .superRefine((settings, context) => {
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

/** Between the end of a lock, or of a call, and the end of the lease. */
const leaseSlackMs = 10_000;

/**
 * A call takes less than so many milliseconds: the lease of its delivery outlasts a lock that was left behind and the call, or the
 * delivery could be sent twice.
 */
export const callMsBound = (settings: { DELIVERY_LEASE_MS: number; TTL_LOCK_TIME_LIMIT_MS: number }): number =>
  settings.DELIVERY_LEASE_MS - settings.TTL_LOCK_TIME_LIMIT_MS - leaseSlackMs;

export class InvalidSettings extends Error {}

/** @throws {InvalidSettings} naming every wrong setting at once */
export function readSettings(environment: Record<string, string | undefined>): Settings {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([name, value]) => name in settingsSchema.shape && value !== ''),
  );
  const parsed = settingsSchema.safeParse(set);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join('.') || 'settings'}: ${issue.message}`);
  throw new InvalidSettings(
    `Heraut cannot start, these settings are wrong (see docs/configuration.md):\n${lines.join('\n')}`,
  );
}
