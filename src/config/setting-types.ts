import * as z from 'zod';

/** The kinds of values that settings have; each reads the text of an environment variable. */
export const wholeNumber = (min: number, max: number) => z.coerce.number().int().min(min).max(max);

const asUrl = (text: z.ZodString, protocols: readonly string[]) =>
  text
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), {
      error: `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    })
    .refine(isPercentEncoded, { error: 'has a user or password that is not percent-encoded' })
    .optional();

const noAtBehindHost = {
  error: 'has an `@` behind the host: percent-encode user and password (`/` %2F, `?` %3F, `#` %23), and `@` as %40',
  abort: true,
};

/** A web address, whose path may have an `@` where there is neither user nor password. */
export const url = (...protocols: string[]) =>
  asUrl(
    z.string().refine((value) => !hasAtBehindHost(value) || hasAtInPathAlone(value), noAtBehindHost),
    protocols,
  );

/** Of a server that Heraut connects to. */
const asServerUrl = (text: z.ZodString, protocols: readonly string[]) =>
  asUrl(
    text.refine((value) => !hasAtBehindHost(value), noAtBehindHost),
    protocols,
  );

export const proxyUrl = asServerUrl(z.string(), ['http:', 'https:']);

/**
 * With a `/`, `?` or `#` in a password, what is before it is taken for the host or its port, and comes to a log with
 * the error that there is none of that name.
 */
const hasAtBehindHost = (value: string): boolean =>
  /^\w+:\/\/[^/?#]*[/?#].*@/s.test(URL.canParse(value) ? new URL(value).href : value);

function hasAtInPathAlone(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { username, password, hash } = new URL(value);
  return username === '' && password === '' && !hash.includes('@');
}

/** Whether user and password of a URL can be decoded. */
function isPercentEncoded(value: string): boolean {
  if (!URL.canParse(value)) return true;
  const { username, password } = new URL(value);
  try {
    for (const part of [username, password]) decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/**
 * As libpq knows them: in the place of the host, and in the parameter of that name. Not in a user or password, in which
 * a comma may be.
 */
const hostsInPlace = /^\w+:\/\/([^/?#]*@|(?![^/?#]*@))(\[[^\]]*\]|[^/?#@:,]*)(:\d*)?,/i;
const hostsInParameter = /[?&]host=[^&#]*(,|%2c)/i;

/**
 * Each kind of connection has its own of these, and the driver would let those of a URL count for all: migrations would
 * end with a short statement, and transactions that are told apart by their names would not be found, or too many
 * (src/ledger/horizon.ts). Ours count more than `options`.
 */
const ownOfConnections = [
  'application_name',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'query_timeout',
];

const setsNoneOf = (value: string, names: readonly string[]): boolean =>
  !URL.canParse(value) || !names.some((name) => new URL(value).searchParams.has(name));

/** The driver takes several hosts for the name of one. */
export const databaseUrl = asServerUrl(
  z
    .string()
    .refine((value) => !hostsInPlace.test(value) && !hostsInParameter.test(value), {
      error:
        'must name one host only: put the address there that always leads to the primary (a virtual IP, HAProxy, the service of a Kubernetes operator)',
      abort: true,
    })
    .refine((value) => setsNoneOf(value, ownOfConnections), {
      error: `must not set ${ownOfConnections.join(', ')}: Heraut has its own for each connection. DATABASE_TIMEOUT says how long a statement may take`,
    }),
  ['postgres:', 'postgresql:'],
);

export const amqpUrl = asServerUrl(
  z
    .string()
    .refine((value) => !hostsInPlace.test(value), {
      error:
        'must name one host only: put a name there that always leads to a node that is there (HAProxy, the service of a Kubernetes operator)',
      abort: true,
    })
    .refine(hasSecondsAsHeartbeat, { error: 'must have whole seconds as its heartbeat, 65535 at most' }),
  ['amqp:', 'amqps:'],
);

function hasSecondsAsHeartbeat(value: string): boolean {
  const heartbeat = URL.canParse(value) ? new URL(value).searchParams.get('heartbeat') : null;
  return heartbeat === null || (/^\d+$/.test(heartbeat) && Number(heartbeat) <= 65_535);
}

/**
 * The driver takes each parameter for an option of its own that counts more than Heraut's: `keyPrefix` changes the keys
 * that locks are looked up by, but not those of the scripts. And it takes whatever follows the host for a number, and a
 * scheme in capitals for a connection without TLS.
 */
export const redisUrl = asServerUrl(
  z
    .string()
    .overwrite((value) => value.replace(/^rediss?:/i, (scheme) => scheme.toLowerCase()))
    .refine((value) => /^rediss?:\/\//.test(value), {
      error: 'must be a URL that starts with redis:// or rediss://',
      abort: true,
    })
    .refine((value) => !URL.canParse(value) || [...new URL(value).searchParams].every(isFamily), {
      error: 'must have no parameters but `family=4` or `family=6`',
    })
    .refine((value) => !URL.canParse(value) || /^(\/\d*)?$/.test(new URL(value).pathname), {
      error:
        'must end with the host and its port, or with `/` and the number of a database: Redis has no names for them',
    }),
  ['redis:', 'rediss:'],
);

const isFamily = ([name, value]: [string, string]): boolean => name === 'family' && /^[46]$/.test(value);

export const secondsPerCustomer = z.string().transform((text, context) => {
  const parsed = z.record(z.string(), z.number().int().min(60).max(2_592_000)).safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  context.addIssue({
    code: 'custom',
    message: 'must be a JSON object, client id → seconds from 60 to 2592000 (30 days)',
  });
  return z.NEVER;
});

const claimValues = z.array(z.string().min(1)).default([]);

/** Role of a user → the values of a claim that give it. */
export const rolesByClaim = z.string().transform((text, context) => {
  const parsed = z
    .strictObject({ viewer: claimValues, operator: claimValues, administrator: claimValues })
    .safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  context.addIssue({
    code: 'custom',
    message: 'must be a JSON object with lists of texts: viewer, operator, administrator',
  });
  return z.NEVER;
});

const loopbackNames = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Of a provider of OpenID Connect: its answers decide who may do what, so nobody on the way may change them. */
export const issuer = url('https:', 'http:').refine(
  (text) => text === undefined || !URL.canParse(text) || isSafe(new URL(text)),
  { error: 'must begin with https://, unless it is on this machine' },
);

const isSafe = ({ protocol, hostname }: URL): boolean => protocol === 'https:' || loopbackNames.has(hostname);

export const commaSeparated = z.string().transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

export const addressOrRange = z.union([z.cidrv4(), z.cidrv6(), z.ipv4(), z.ipv6()], {
  error: 'must be CIDR ranges or addresses',
});

/** Or one for all names below it: `*.example.org`, `.example.org`. */
export const hostName = z.string().regex(/^(\*?\.)?[\w-]+(\.[\w-]+)*$/);

/** A name, an IPv4 address or an IPv6 address in brackets; `*.` or `.` in front of a name; a port. Or `*` alone. */
export const hostAndPort = z.string().regex(/^(\*|((\*?\.)?[\w-]+(\.[\w-]+)*|\[[\da-f:.]+\])(:\d{1,5})?)$/i, {
  error: 'must be host names, with a port or without',
});

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
/** As Python, and so Open Notificaties, calls them. */
const levelsOfPython: Readonly<Record<string, string>> = { warning: 'warn', critical: 'fatal' };

export const logLevel = z
  .string()
  .transform((text) => text.toLowerCase())
  .transform((text) => levelsOfPython[text] ?? text)
  .pipe(z.enum(levels));

/** Of web pages. */
export const origin = z
  .string()
  .refine((text) => text === '*' || (URL.canParse(text) && new URL(text).origin === text), {
    error: 'must be `*` or origins, such as https://app.example.org',
  });

/** Each range as its first and its last port. */
export const ports = commaSeparated.transform((ranges, context) => {
  const pairs = ranges
    .map((range) => range.split('-').map(Number))
    .map(([first = 0, last = first]) => ({ first, last }));
  const areNumbers = ranges.length > 0 && ranges.every((range) => /^\d{1,5}(-\d{1,5})?$/.test(range));
  if (areNumbers && pairs.every(({ first, last }) => 1 <= first && first <= last && last <= 65_535)) return pairs;
  context.addIssue({ code: 'custom', message: 'must be ports from 1 to 65535, or ranges of them such as 8000-8999' });
  return z.NEVER;
});

export const statuses = commaSeparated
  .pipe(z.array(z.string().regex(/^[345]\d\d$/, { error: 'must be HTTP statuses from 300 to 599' })).min(1))
  .transform((texts) => texts.map(Number));

/** No more than one address, and nothing that could end a line of a mail's head. */
export const mailAddress = z.email({ error: 'must be a mail address' }).max(254);

export interface MailSender {
  /** Empty: none is shown. */
  name: string;
  address: string;
}

/** `address`, or `Name <address>`, with quotation marks around the name or without. */
export const mailSender = z.string().transform((text, context): MailSender => {
  const [, name = '', inside] = /^"?([^"<>\p{Cc}]*?)"?\s*<([^<>]*)>$/u.exec(text.trim()) ?? [];
  const address = mailAddress.safeParse(inside ?? text.trim());
  if (address.success) return { name, address: address.data };
  context.addIssue({ code: 'custom', message: 'must be a mail address, or `Name <address>`' });
  return z.NEVER;
});

/** As Standard Webhooks write it. @returns with its prefix */
export const webhookSecret = z.string().transform((text, context) => {
  const base64 = text.replace(/^whsec_/, '');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') === base64 && bytes.length >= 24 && bytes.length <= 64) return `whsec_${base64}`;
  context.addIssue({ code: 'custom', message: 'must be base64 of 24 to 64 bytes, with `whsec_` in front or without' });
  return z.NEVER;
});

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema
  }
}
