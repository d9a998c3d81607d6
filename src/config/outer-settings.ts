import * as z from 'zod';
import {
  commaSeparated,
  hostAndPort,
  hostName,
  logLevel,
  mailAddress,
  mailSender,
  origin,
  url,
  webhookSecret,
  wholeNumber,
} from './setting-types.js';

/** Of alerts, and of what callers, proxies and collectors see. */
export const outerSettings = {
  ALERT_WEBHOOK_URL: url('http:', 'https:').describe(
    'Where alerts are posted; a user and password in it are sent as Basic. It may be on a private network, unlike callbacks; through `EGRESS_PROXY_URL` where there is one. Not set: nowhere.',
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
  FILTER_NAME_SETS_PER_APPLICATION: wholeNumber(1, 1_000_000)
    .default(500)
    .describe(
      'Different sets of names that the filters of the subscriptions of one application may have on one channel, names whose value is `*` not counted; 409 for a subscription, or a change of one, that brings another. Every publication on the channel looks at each set once. With the default, any one subscription fits.',
    ),
  UNFILTERED_SUBSCRIPTIONS_PER_APPLICATION: wholeNumber(1, 100_000_000)
    .default(1000)
    .describe(
      'Subscriptions of one application on one channel that demand no value of any filter that the channel knows, and so get every notification; 409 for a subscription, or a change of one, that is another. One with several such entries, each with names of its own, counts once for each. On a channel without filters all are such. Every publication makes a delivery for each of them.',
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
    .describe(
      "`off`, `warn` or `enforce`: whether a channel's `documentatieLink` is fetched and must answer 200. `warn` only logs that it does not; `enforce` refuses the channel.",
    ),
  TRUST_FORWARDED_HEADERS: z
    .stringbool()
    .default(false)
    .describe(
      'Build URLs from `X-Forwarded-Host` and `X-Forwarded-Proto`, and take the last address of `X-Forwarded-For` for that of the caller. Only behind a proxy that sets all three, or, with `ALLOWED_HOSTS`, one that passes `Host` on and sets the other two (such as an AWS ALB).',
    ),
  PATH_PREFIX: z
    .string()
    .regex(/^((\/[\w.~-]+)+)?$/, { error: 'must be a path such as /nrc, without a slash at the end' })
    .default('')
    .describe(
      'Beginning of the path that a proxy in front removes, such as `/nrc`: URLs in answers begin with it, and so does the console, unless `CONSOLE_URL` says where it is. Not set: none.',
    ),
  KEEP_ALIVE_SEC: wholeNumber(1, 86_400)
    .default(620)
    .describe(
      'Seconds for which a connection without a request stays open: longer than a proxy in front keeps its own to Heraut, or it answers some requests with 502. The default is longer than nginx (60), Traefik (90), Caddy (120) and the load balancers of Google (600) keep theirs; Envoy keeps its for 3600.',
    ),
  ALLOWED_HOSTS: commaSeparated
    .pipe(z.array(hostAndPort))
    .default([])
    .describe(
      'Hosts, comma-separated, that a request may name, and that URLs in answers are built from; without a port: any port; `*.example.org`: every name below it; `.example.org`: that name too; `*`: any host. A request for another host is answered 421, except for `/health` and `/metrics`, and by the address 127.0.0.1 or [::1] from the machine itself, through no proxy. Not set: any host, so let a proxy in front fix it.',
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
      '`always_on`, `always_off`, `traceidratio`, `parentbased_always_on`, `parentbased_always_off` or `parentbased_traceidratio`: which publications are traced. `parentbased_…`: as the `traceparent` of their publisher says, and those without one by the rest of the name; the others ask no publisher.',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('For `…traceidratio`: the part of the publications that is traced; 0.01 is one in a hundred.'),
  LOG_LEVEL: logLevel
    .default('info')
    .describe(
      'Least severe log event written: `fatal`, `error`, `warn`, `info`, `debug`, `trace`, or `silent` for none; in capitals or not, `warning` and `critical` as well. Events are JSON, one a line, on standard output.',
    ),
};
