import * as z from 'zod';
import { amqpUrl, commaSeparated, databaseUrl, redisUrl, wholeNumber } from './setting-types.js';

export const roles = ['api', 'worker', 'dispatcher'] as const;
export type Role = (typeof roles)[number];

/** Only a process that publishers call has reason to wait for them to go elsewhere. */
export const shutdownDelayMs = (settings: { ROLES: Role[]; SHUTDOWN_DELAY_SEC: number }): number =>
  settings.ROLES.includes('api') ? settings.SHUTDOWN_DELAY_SEC * 1000 : 0;

/** Of a process, and of the servers that it uses. */
export const serverSettings = {
  HOST: z
    .string()
    .default('127.0.0.1')
    .describe(
      'Address to listen on. In a container `0.0.0.0`, or `::` for IPv6 and IPv4; `localhost` is 127.0.0.1 alone.',
    ),
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
      'Processes that share the port and have these roles, started and restarted by the one that was started; with RabbitMQ only the first of them has the role `dispatcher`. `auto`: one for each core and 512 MB of memory (less 150 MB), at most 13 unless `DATABASE_POOL_SIZE` is set, and one on the embedded database. `npm start` sets `auto`.',
    ),
  SHUTDOWN_DELAY_SEC: z.coerce
    .number()
    .min(0)
    .max(120)
    .default(0)
    .describe(
      'Seconds for which a process with the role `api` goes on with everything after SIGTERM or SIGINT, while `/health/ready` already answers 503 and each answer ends its connection: longer than a load balancer needs to notice. Stopping takes so much longer. A second signal, three seconds after the first or later, ends it.',
    ),

  DATABASE_URL: databaseUrl.describe(
    'PostgreSQL 15 or newer, the ledger. Not set: an embedded database in `DATA_DIR` (one process, no fsync). It may not set `application_name` or time limits, of which Heraut has its own.',
  ),
  AMQP_URL: amqpUrl.describe(
    'RabbitMQ, which moves the work. Not set: an in-process queue. `?heartbeat=` behind it: seconds, in place of 10; RabbitMQ takes the chunks of a process from which nothing has come for two to three times as long. `cacertfile`, `certfile` and `keyfile` there: files of TLS (`amqps://`), as PEM.',
  ),
  REDIS_URL: redisUrl.describe(
    'Redis, which keeps locks and seals, and what a delivery does at this moment (`live`); with a number behind it, `/3`, that database of it. Not set: locks and seals are in Postgres, and `live` is known only to the process that sends the delivery, so that another one answers `null`.',
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
    .describe(
      'First part of the names of the RabbitMQ queues, so that several installations can share a virtual host of RabbitMQ. Each has its own, or a virtual host of its own, and so has a copy of one: two that share it take, and a copy sends, what the other has to deliver.',
    ),
  QUEUE_MAX_LENGTH: wholeNumber(10, 10_000_000)
    .default(50_000)
    .describe(
      'Messages (of up to 64 deliveries) a queue holds before it refuses; refused deliveries wait in the ledger. Counts when the queue is created. Without RabbitMQ the queue is in memory, and holds at most 64 MB per lane.',
    ),
};
