import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { InvalidSettings, readSettings, settingsSchema } from './settings.js';

const withUrls = {
  DATABASE_URL: 'postgres://heraut@db.example/heraut',
  AMQP_URL: 'amqp://rabbit.example',
  REDIS_URL: 'redis://redis.example',
};

describe('settings', () => {
  it('can all be absent: every setting has a default, and the three servers are not used', () => {
    const settings = readSettings({});
    expect(settings).toMatchObject({
      HOST: '127.0.0.1',
      PORT: 8000,
      ROLES: ['api', 'worker', 'dispatcher'],
      PROCESSES: 1,
      DATA_DIR: './data',
      NOTIFICATION_REQUESTS_TIMEOUT: 10,
      JWT_EXPIRY: 3600,
      TIME_LEEWAY: 0,
    });
    expect(
      settings.DATABASE_URL ?? settings.AMQP_URL ?? settings.REDIS_URL ?? settings.SUPERUSER_SECRET,
    ).toBeUndefined();
  });

  it('count an empty value as not set', () => {
    expect(readSettings({ PORT: '', DATABASE_URL: '', ROLES: '', LOG_LEVEL: '' })).toEqual(readSettings({}));
  });

  it.each([
    ['ADMIN_PORT', ' '],
    ['DATABASE_URL', 'postgres://heraut:hidden@db.example/heraut '],
    ['SUPERUSER_SECRET', 'hidden-hidden-hidden-hidden-hidden-hidden\n'],
    ['LOG_LEVEL', '\tinfo'],
  ])('are refused by name, and once, where white space begins or ends a value: %s', (name, value) => {
    const refused = () => readSettings({ [name]: value });
    expect(refused).toThrow(InvalidSettings);
    expect(refused).toThrow(new RegExp(`\\n  ${name}: must not begin or end with white space$`));
    expect(refused).not.toThrow('hidden');
  });

  it('are as without it where a variable is undefined, as the dispatcher that runs once has ROLES', () => {
    expect(readSettings({ ROLES: undefined })).toEqual(readSettings({}));
  });

  it('read who mail comes from, with a name or without, and nothing that would end its line', () => {
    const mail = (DEFAULT_FROM_EMAIL: string) => readSettings({ EMAIL_HOST: 'smtp.example', DEFAULT_FROM_EMAIL });
    const address = 'heraut@example.org';
    for (const [text, name] of [
      [address, ''],
      [`<${address}>`, ''],
      [`Heraut, the broker <${address}>`, 'Heraut, the broker'],
      [`"Heraut" <${address}>`, 'Heraut'],
    ] as const)
      expect(mail(text).DEFAULT_FROM_EMAIL).toEqual({ name, address });
    for (const wrong of ['heraut', `Heraut\r\nBcc: a@b.nl <${address}>`, `<${address}> <a@b.nl>`, 'a@b.nl, c@d.nl'])
      expect(() => mail(wrong)).toThrow(/DEFAULT_FROM_EMAIL: must be a mail address/);
  });

  it('refuse alerts that would go nowhere, or unsigned', () => {
    const secret = Buffer.alloc(24, 'x').toString('base64');
    const webhook = { ALERT_WEBHOOK_URL: 'http://10.0.0.1/' };
    expect(readSettings({ ...webhook, ALERT_WEBHOOK_SECRET: secret }).ALERT_WEBHOOK_SECRET).toBe(`whsec_${secret}`);
    for (const wrong of [{}, { ALERT_WEBHOOK_SECRET: 'short' }, { ALERT_WEBHOOK_SECRET: `${secret}!` }])
      expect(() => readSettings({ ...webhook, ...wrong })).toThrow(/ALERT_WEBHOOK_SECRET: (is needed|must be base64)/);
    expect(() => readSettings({ ALERT_MAIL_TO: 'a@b.nl' })).toThrow('EMAIL_HOST: is needed with ALERT_MAIL_TO');
    expect(() => readSettings({ EMAIL_HOST: 'smtp.example' })).toThrow('DEFAULT_FROM_EMAIL: is needed');
    expect(() => readSettings({ ALERT_MAIL_TO: 'a@b.nl\r\nc@d.nl' })).toThrow(/ALERT_MAIL_TO.*must be a mail address/);
  });

  it('read the severity of the log as Open Notificaties writes it', () => {
    const names = ['INFO', 'Debug', 'WARNING', 'CRITICAL', 'warn'];
    const levels = names.map((LOG_LEVEL) => readSettings({ LOG_LEVEL }).LOG_LEVEL);
    expect(levels).toEqual(['info', 'debug', 'warn', 'fatal', 'warn']);
    expect(refusal({ LOG_LEVEL: 'LOUD' })).toContain('LOG_LEVEL: ');
  });

  it('refuse the database of Open Notificaties, which is not the embedded one, without the URL of one for Heraut', () => {
    const theirs = { DB_HOST: 'db', DB_NAME: 'opennotificaties', DB_PASSWORD: 'of-their-database' };
    expect(refusal(theirs)).toMatch(/DATABASE_URL: is needed where DB_HOST and DB_NAME are set.*postgresql:\/\//);
    expect(refusal({ DB_NAME: 'opennotificaties', PORT: 'x' })).toMatch(
      /PORT: .*\n {2}DATABASE_URL: .* DB_NAME is set/,
    );
    expect(refusal(theirs)).not.toContain('of-their-database');
    for (const fine of [
      { ...theirs, ...withUrls },
      { DB_HOST: '', DB_PASSWORD: 'x' },
    ])
      expect(() => readSettings(fine)).not.toThrow();
  });

  it('ignore variables of the environment that are no settings', () => {
    expect(readSettings({ PATH: '/usr/bin', npm_config_cache: 'x', port: '9' })).toEqual(readSettings({}));
  });

  it('turn text into numbers, lists and switches', () => {
    const settings = readSettings({
      ...withUrls,
      PORT: '9000\n',
      PROCESSES: '4',
      ROLES: ' api , worker,',
      NOTIFICATION_REQUESTS_TIMEOUT: '2.5',
      TEST_CALLBACK_AUTH: 'false',
      TRUST_FORWARDED_HEADERS: 'true',
      CALLBACK_ALLOWED_NETWORKS: '10.0.0.0/8, fd00::/8',
      CALLBACK_SCHEMES: 'https',
      CALLBACK_PORTS: '443, 8000-8999',
      EGRESS_PROXY_EXCEPTIONS: 'internal.example, *.test, 10.0.0.0/8, ::1',
      FINAL_STATUSES: '410, 422',
    });
    expect(settings).toMatchObject({
      ...withUrls,
      PORT: 9000,
      PROCESSES: 4,
      ROLES: ['api', 'worker'],
      NOTIFICATION_REQUESTS_TIMEOUT: 2.5,
      TEST_CALLBACK_AUTH: false,
      TRUST_FORWARDED_HEADERS: true,
      CALLBACK_ALLOWED_NETWORKS: ['10.0.0.0/8', 'fd00::/8'],
      CALLBACK_SCHEMES: ['https'],
      CALLBACK_PORTS: [
        { first: 443, last: 443 },
        { first: 8000, last: 8999 },
      ],
      EGRESS_PROXY_EXCEPTIONS: ['internal.example', '*.test', '10.0.0.0/8', '::1'],
      FINAL_STATUSES: [410, 422],
    });
  });

  it('are refused with every error at once, each naming its setting', () => {
    const message = refusal({
      PORT: 'eighty',
      ROLES: 'api,baker',
      AMQP_URL: 'http://rabbit',
      JWT_EXPIRY: '0',
      LOG_LEVEL: 'loud',
      ALERT_WEBHOOK_URL: 'http://alerts.example/',
    });
    const wrong = ['PORT', 'ROLES', 'AMQP_URL', 'JWT_EXPIRY', 'LOG_LEVEL', 'ALERT_WEBHOOK_SECRET'];
    for (const name of wrong) expect(message).toContain(`  ${name}`);
    expect(message).toContain('amqp:// or amqps://');
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['DATABASE_URL', 'mysql://db'],
    ['DATABASE_URL', 'db.example:5432'],
    ['REDIS_URL', 'unix:///run/redis'],
    ['REDIS_URL', 'redis:'],
    ['REDIS_URL', 'redis:/3'],
    ['REDIS_URL', 'redis://redis.example/heraut'],
    ['REDIS_URL', 'redis://redis.example/3/4'],
    ['REDIS_URL', 'redis://redis.example?keyPrefix=heraut:'],
    ['REDIS_URL', 'redis://redis.example/3?family=6&commandTimeout=1'],
    ['REDIS_URL', 'redis://redis.example?family=5'],
    ['ROLES', ','],
    ['PROCESSES', '0'],
    ['PROCESSES', '1.5'],
    ['PROCESSES', 'all'],
    ['PROCESSES', '2'], // of the embedded database
    ['QUEUE_PREFIX', 'with space'],
    ['TEST_CALLBACK_AUTH', 'perhaps'],
    ['NOTIFICATION_REQUESTS_TIMEOUT', '0'],
    ['TIME_LEEWAY', '-5'],
    ['CALLBACK_NETWORKS', 'private'],
    ['CALLBACK_ALLOWED_NETWORKS', '10.0.0.0/33'],
    ['CALLBACK_ALLOWED_NETWORKS', 'internal.example'],
    ['CALLBACK_SCHEMES', 'ftp'],
    ['CALLBACK_PORTS', ','],
    ['CALLBACK_PORTS', '0'],
    ['CALLBACK_PORTS', '80-'],
    ['CALLBACK_PORTS', '9000-8000'],
    ['CALLBACK_PORTS', '65536'],
    ['EGRESS_PROXY_URL', 'proxy.example:3128'],
    ['EGRESS_PROXY_URL', 'socks5://proxy.example'],
    ['EGRESS_PROXY_URL', 'http://user:100%@proxy.example'],
    ['ALERT_WEBHOOK_URL', 'https://user:100%@alerts.example/'],
    ['EGRESS_PROXY_EXCEPTIONS', 'https://internal.example'],
    ['EGRESS_PROXY_EXCEPTIONS', '10.0.0.0/33'],
    ['FINAL_STATUSES', ','],
    ['FINAL_STATUSES', '410,gone'],
    ['FINAL_STATUSES', '200'],
    ['FINAL_STATUSES', '600'],
  ])('refuse %s=%s', (name, value) => {
    expect(refusal({ [name]: value })).toContain(`  ${name}`);
  });

  it.each([
    'postgres://heraut@a:5432,b:5432/db',
    'postgresql://heraut:p%40ss@a,b,c/db?target_session_attrs=read-write',
    'postgres://[::1]:5432,[::2]:5432/db',
    'postgres:///db?host=a,b&port=5432,5433',
    'postgres://heraut@a/db?sslmode=require&host=a%2Cb',
  ])('refuse several hosts in DATABASE_URL, and say what to put there: %s', (DATABASE_URL) => {
    const message = refusal({ DATABASE_URL });
    expect(message).toContain('  DATABASE_URL: must name one host only');
    expect(message).not.toContain('must be a URL');
  });

  it.each([
    'postgres://heraut:p,w@db.example:5432/heraut',
    'postgres://her,aut:p@db.example/heraut',
    'postgres://heraut:12,34@db.example/heraut',
    'postgres://heraut:,w@db.example/heraut',
    'postgres://heraut@db.example/heraut,too?sslmode=require&options=-c%20search_path=a,b',
    'postgres:///heraut?host=/run/postgresql',
  ])('take DATABASE_URL=%s for that of one host', (DATABASE_URL) => {
    expect(readSettings({ DATABASE_URL })).toMatchObject({ DATABASE_URL });
  });

  it.each([
    ['amqp://app:password@h1,h2/v', 'must name one host only'],
    ['amqp://h1:5672,h2:5672/v', 'must name one host only'],
    ['amqps://[::1],[::2]/v', 'must name one host only'],
    ['amqp://h1/v?heartbeat=abc', 'must have whole seconds as its heartbeat'],
    ['amqp://h1/v?heartbeat=', 'must have whole seconds as its heartbeat'],
    ['amqp://h1/v?heartbeat=1.5', 'must have whole seconds as its heartbeat'],
    ['amqp://h1/v?heartbeat=70000', 'must have whole seconds as its heartbeat'],
    ['amqp://app:100%@h1/v', 'has a user or password that is not percent-encoded'],
  ])('refuse an AMQP_URL with which RabbitMQ would never be reached: %s', (AMQP_URL, why) => {
    const message = refusal({ AMQP_URL });
    expect(message).toContain(`  AMQP_URL: ${why}`);
    expect(message).not.toContain('must be a URL');
  });

  it.each([
    'amqp://app:p,w@h1:5672/a,b',
    'amqp://app:12,34@h1/v',
    'amqp://app:,x@h1/v',
    'amqp://a,b:x@h1/v',
    'amqps://h1/v?heartbeat=0',
    'amqp://h1?heartbeat=60',
  ])('take AMQP_URL=%s as it is', (AMQP_URL) => {
    expect(readSettings({ AMQP_URL })).toMatchObject({ AMQP_URL });
  });

  it.each([
    'application_name=heraut-api-1',
    'sslmode=require&statement_timeout=0',
    'lock_timeout=1000',
    'idle_in_transaction_session_timeout=1000',
    'query_timeout=1000',
    'application%5Fname=heraut-api-1',
  ])('refuse a DATABASE_URL that gives all connections what each kind has of its own: %s', (parameters) => {
    const message = refusal({ DATABASE_URL: `postgres://heraut:s3cret@db.example/heraut?${parameters}` });
    expect(message).toMatch(/^ {2}DATABASE_URL: must not set application_name, .*DATABASE_TIMEOUT says how long/m);
    expect(message).not.toContain('s3cret');
  });

  it('say of a REDIS_URL how it has to be written, and take its scheme in capitals for what it means', () => {
    expect(refusal({ REDIS_URL: 'redis://h/heraut' })).toMatch(/REDIS_URL: must end with .* the number of a database/);
    expect(refusal({ REDIS_URL: 'redis://h?keyPrefix=a' })).toMatch(
      /REDIS_URL: must have no parameters but `family=4`/,
    );
    expect(refusal({ REDIS_URL: 'redis:/3' })).toMatch(/REDIS_URL: must be a URL that starts with redis:\/\/ or/);
    expect(refusal({ REDIS_URL: 'redis://:100%@h/3' })).toMatch(/REDIS_URL: has a .* that is not percent-encoded/);
    for (const rest of ['h', 'h/', ':100%25@h', ':s3cret@h:6380/3', '[::1]/3?family=6'])
      expect(readSettings({ REDIS_URL: `REDISS://${rest}` }).REDIS_URL).toBe(`rediss://${rest}`);
  });

  it('never repeat a value in the refusal, which goes to a log: it may be a password', () => {
    const settings = { DATABASE_URL: 'mysql://heraut:s3cret@db', EGRESS_PROXY_URL: 'x://u:s3cret@proxy', PORT: 'x' };
    expect(refusal(settings)).not.toContain('s3cret');
  });

  it.each([
    ['DATABASE_URL', 'postgres://heraut:100%@db.example/heraut', 'has a user or password that is not percent-encoded'],
    ['DATABASE_URL', 'postgres://h%C3:%A9@db.example/heraut', 'has a user or password that is not percent-encoded'],
    ['CONSOLE_URL', 'https://user:100%@console.example/', 'has a user or password that is not percent-encoded'],
    ['DATABASE_URL', 'postgres://heraut:p@s3cret#word/1@db.example/heraut', 'has an `@` behind the host'],
    ['DATABASE_URL', 'postgres://heraut:s3cret#word@db.example/heraut', 'has an `@` behind the host'],
    ['DATABASE_URL', 'postgres://heraut:1?s3cret=1@db.example/heraut', 'has an `@` behind the host'],
    ['AMQP_URL', 'amqp://app:p@s3cret/word@h1/v', 'has an `@` behind the host'],
    ['REDIS_URL', 'redis://:p@s3cret#word@h/3', 'has an `@` behind the host'],
    ['EGRESS_PROXY_URL', 'http://user:123/s3cret@proxy.example', 'has an `@` behind the host'],
    ['ALERT_WEBHOOK_URL', 'https://user:p@s3cret/word@alerts.example', 'has an `@` behind the host'],
    ['ALERT_WEBHOOK_URL', 'https://user:123#s3cret@alerts.example', 'has an `@` behind the host'],
  ])('refuse a %s with a password that is not percent-encoded, without a piece of it: %s', (name, value, why) => {
    const message = refusal({ [name]: value, ALERT_WEBHOOK_SECRET: 'whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0' });
    expect(message).toContain(`  ${name}: ${why}`);
    expect(message).not.toContain('s3cret');
  });

  it.each([
    ['DATABASE_URL', 'postgres://heraut:p@ss%23word%2F1@db.example/heraut?user=a%40b'],
    ['ALERT_WEBHOOK_URL', 'https://alerts.example/webhook/one@two?to=@team'],
  ])('take an `@` in a %s where it cannot be mistaken: %s', (name, value) => {
    const settings = { [name]: value, ALERT_WEBHOOK_SECRET: 'whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0' };
    expect(readSettings(settings)).toMatchObject({ [name]: value });
  });

  it('refuse a lease that could end while its delivery is still being sent', () => {
    const lock = { TTL_LOCK_TIME_LIMIT_MS: '60000', NOTIFICATION_REQUESTS_TIMEOUT: '20' };
    expect(refusal({ ...lock, DELIVERY_LEASE_MS: '90000' })).toContain('DELIVERY_LEASE_MS: must exceed');
    expect(readSettings({ ...lock, DELIVERY_LEASE_MS: '90001' }).DELIVERY_LEASE_MS).toBe(90_001);
  });

  it('refuse to remember a key longer than its notification is kept', () => {
    expect(refusal({ RETENTION_DAYS: '6' })).toContain('IDEMPOTENCY_KEY_TTL_SEC: must not exceed');
    const settings = readSettings({ RETENTION_DAYS: '2', IDEMPOTENCY_KEY_TTL_SEC: '172800' });
    expect(settings.IDEMPOTENCY_KEY_TTL_SEC).toBe(172_800);
  });

  it('say how long the outcomes of each customer are remembered, and which customers get at least once', () => {
    const { TTL_IDEMPOTENCY_PER_CUSTOMER_SEC, AT_LEAST_ONCE_SENDING_CUSTOMERS } = readSettings({
      TTL_IDEMPOTENCY_PER_CUSTOMER_SEC: '{"cases": 604800, "*": 2592000}',
      AT_LEAST_ONCE_SENDING_CUSTOMERS: ' cases , archive,,\n',
    });
    expect(TTL_IDEMPOTENCY_PER_CUSTOMER_SEC).toEqual({ cases: 604_800, '*': 2_592_000 });
    expect(AT_LEAST_ONCE_SENDING_CUSTOMERS).toEqual(['cases', 'archive']);
    expect(readSettings({})).toMatchObject({
      TTL_IDEMPOTENCY_PER_CUSTOMER_SEC: {},
      AT_LEAST_ONCE_SENDING_CUSTOMERS: ['*'],
      TTL_LOCK_TIME_LIMIT_MS: 120_000,
    });
  });

  it.each(['60', '[]', '{', '{"cases": "60"}', '{"cases": 59}', '{"cases": 2592001}', '{"cases": 1e9}'])(
    'refuse TTL_IDEMPOTENCY_PER_CUSTOMER_SEC=%s',
    (value) => {
      expect(refusal({ TTL_IDEMPOTENCY_PER_CUSTOMER_SEC: value })).toContain('client id → seconds from 60 to 2592000');
    },
  );

  it('refuse to divide the roles over processes that have no queue or no database between them', () => {
    const { AMQP_URL, ...withoutQueue } = withUrls;
    expect(refusal({ ...withoutQueue, ROLES: 'api,dispatcher' })).toContain('without AMQP_URL');
    expect(readSettings({ ...withoutQueue, AMQP_URL, ROLES: 'api,dispatcher' }).ROLES).toEqual(['api', 'dispatcher']);
    expect(refusal({ ROLES: 'api' })).toContain('without DATABASE_URL');
    expect(refusal({ ROLES: 'api,worker,worker' })).toContain('without');
    expect(readSettings({ ...withoutQueue, AMQP_URL, ROLES: 'worker,api,worker' }).ROLES).toEqual(['worker', 'api']);
  });

  it('all have a description', () => {
    for (const [name, setting] of Object.entries(settingsSchema.shape)) {
      expect(`${name}: ${setting.description ?? ''}`).toMatch(/^[A-Z_0-9]+: .{15,}[.?]$/);
    }
  });

  it.each([
    ['ADMIN_PORT', { PORT: '9000', ADMIN_PORT: '9000' }],
    ['ALLOWED_HOSTS', { ALLOWED_HOSTS: 'https://nrc.example.org' }],
    ['ALLOWED_HOSTS', { ALLOWED_HOSTS: 'nrc.example.org/path' }],
    ['ALLOWED_HOSTS', { ALLOWED_HOSTS: '*:8000' }],
    ['ALLOWED_HOSTS', { ALLOWED_HOSTS: '..example.org' }],
    ['ALLOWED_HOSTS', { ALLOWED_HOSTS: '*.*.example.org' }],
    ['CORS_ALLOWED_ORIGINS', { CORS_ALLOWED_ORIGINS: 'app.example.org' }],
    ['CORS_ALLOWED_ORIGINS', { CORS_ALLOWED_ORIGINS: 'https://app.example.org/' }],
    ['CORS_ALLOWED_ORIGINS', { CORS_ALLOWED_ORIGINS: 'null' }],
  ])('refuse %s where it would let in more or less than it seems to: %j', (name, settings) => {
    expect(() => readSettings(settings)).toThrow(name);
  });

  it('that are a choice name every value in their description', () => {
    const choices = Object.entries(settingsSchema.shape).map(([name, setting]) => {
      const schema = JSON.stringify(z.toJSONSchema(setting, { unrepresentable: 'any' }));
      const values = [...schema.matchAll(/"enum":(\[[^\]]*\])/g)].flatMap(([, list]) => JSON.parse(list!) as string[]);
      return { name, values, missing: values.filter((value) => !setting.description!.includes(`\`${value}\``)) };
    });
    expect(choices.find(({ name }) => name === 'LOG_LEVEL')!.values).toContain('silent');
    expect(choices.filter(({ missing }) => missing.length > 0)).toEqual([]);
  });

  it('take hosts and origins as they are written', () => {
    expect(
      readSettings({
        ADMIN_PORT: '0',
        PORT: '0',
        ALLOWED_HOSTS: 'nrc.example.org, nrc.example.org:8443,*.intern.example,.example.nl,[::1]:8000,10.0.0.1,*',
        CORS_ALLOWED_ORIGINS: 'https://app.example.org, http://127.0.0.1:5173',
      }),
    ).toMatchObject({
      ADMIN_PORT: 0,
      ALLOWED_HOSTS: [
        'nrc.example.org',
        'nrc.example.org:8443',
        '*.intern.example',
        '.example.nl',
        '[::1]:8000',
        '10.0.0.1',
        '*',
      ],
      CORS_ALLOWED_ORIGINS: ['https://app.example.org', 'http://127.0.0.1:5173'],
    });
  });
});

function refusal(environment: Record<string, string>): string {
  try {
    readSettings(environment);
  } catch (error) {
    if (error instanceof InvalidSettings) return error.message;
    throw error;
  }
  throw new Error('The settings were accepted.');
}
