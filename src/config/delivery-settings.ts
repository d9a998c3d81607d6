import * as z from 'zod';
import {
  addressOrRange,
  commaSeparated,
  hostName,
  proxyUrl,
  ports,
  secondsPerCustomer,
  statuses,
  wholeNumber,
} from './setting-types.js';

/** Of calls to receivers, and of what is kept of them. */
export const deliverySettings = {
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
      'Deliveries that one worker sends at once; a quarter of these places is for all endpoints together that have not answered well lately, and an eighth for receivers that answer within a quarter of a second. Further work waits in memory or in the queue.',
    ),
  MAX_IN_FLIGHT_PER_ENDPOINT: wholeNumber(1, 10_000)
    .default(128)
    .describe(
      'Most of these calls that one callback URL may have, for each TLS identity that it is called with; further work waits in memory, and beyond that in the ledger. Divided by `PROCESSES`, with at least one for each.',
    ),
  CIRCUIT_BREAKER_FAILURES: wholeNumber(1, 1000)
    .default(5)
    .describe(
      'Deliveries that fail one after the other within 30 s before an endpoint is parked: what is for it is held until a probe succeeds. No answer counts for its origin (scheme, host and port), or for its URL alone while another URL of the origin answers, 429 and 5xx for its URL, as it is called with that TLS identity, and so does a certificate that either side refuses. Each worker counts for itself.',
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
    .describe('Schemes that callbacks may have, comma-separated: `http`, `https`. `https` alone refuses the others.'),
  CALLBACK_PORTS: ports
    .optional()
    .describe('Ports and ranges of ports, comma-separated, that callbacks may have: `443,8000-8999`. Not set: any.'),
  EGRESS_PROXY_URL: proxyUrl.describe(
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
      'Days that the bodies of notifications are kept, and what receivers answered; a channel may have days of its own. One with an unfinished delivery is kept until that has ended, and that of a dead letter for at least a week after its end (or `RETENTION_DAYS`, where that is shorter), unless it is closed. Not set: as long as the rows.',
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
};
