/*
 * Operators who come over from Open Notificaties bring its environment along. Some names are the same here; these are
 * not read.
 */

/** Each with what takes its place; undefined: nothing does, or nothing needs to. */
const ofOpenNotificaties: Readonly<Record<string, string | undefined>> = {
  DB_HOST: 'DATABASE_URL',
  DB_NAME: 'DATABASE_URL',
  DB_USER: 'DATABASE_URL',
  DB_PASSWORD: 'DATABASE_URL',
  SECRET_KEY: 'SECRET_KEYS',
  SITE_DOMAIN: 'ALLOWED_HOSTS',
  SUBPATH: 'PATH_PREFIX',
  IS_HTTPS: 'TRUST_FORWARDED_HEADERS',
  USE_X_FORWARDED_HOST: 'TRUST_FORWARDED_HEADERS',
  NUM_PROXIES: 'TRUST_FORWARDED_HEADERS',
  NOTIFICATION_NUMBER_OF_DAYS_RETAINED: 'RETENTION_DAYS',
  EXTRA_VERIFY_CERTS: 'NODE_EXTRA_CA_CERTS',
  RUN_SETUP_CONFIG: 'CONFIG_FILE',
  CELERY_WORKER_CONCURRENCY: 'MAX_IN_FLIGHT',
  LOG_NOTIFICATIONS_IN_DB: undefined,
  SENTRY_DSN: undefined,
  NOTIFICATION_SEC_INTERVAL: undefined,
  NOTIFICATION_LIMIT: undefined,
};

const insteadOf = (name: string): string | undefined =>
  ofOpenNotificaties[name] ?? (name.startsWith('DB_POOL_') ? 'DATABASE_POOL_SIZE' : undefined);

const beginnings = /^(CELERY|UWSGI|FLOWER|DB_POOL)_/;
/** Kubernetes gives containers such variables for a service of that name. */
const ofKubernetes = /_(SERVICE_.*|PORT(_.*)?)$/;

const isOfOpenNotificaties = (name: string): boolean =>
  Object.hasOwn(ofOpenNotificaties, name) || (beginnings.test(name) && !ofKubernetes.test(name));

/** Those that are set, and not read: each as `DB_POOL_ENABLED (here DATABASE_POOL_SIZE)`. Never with their values. */
export function settingsNotRead(environment: Record<string, string | undefined>): string[] {
  return Object.keys(environment)
    .filter((name) => environment[name] && isOfOpenNotificaties(name))
    .toSorted()
    .map((name) => (insteadOf(name) ? `${name} (here ${insteadOf(name)})` : name));
}

/**
 * Why not to start: the database that was meant is not the embedded one. No URL is made of these settings: they name
 * the database of Open Notificaties, and Heraut's tables belong in one of their own.
 */
export function refusalOfDatabase(environment: Record<string, string | undefined>): string | undefined {
  const named = ['DB_HOST', 'DB_NAME'].filter((name) => environment[name]);
  if (environment.DATABASE_URL || named.length === 0) return undefined;
  return `DATABASE_URL: is needed where ${named.join(' and ')} ${named.length > 1 ? 'are' : 'is'} set, which Heraut does not read: give it as postgresql://user:password@host:5432/database, user and password percent-encoded, with a database of its own; or unset ${named.join(' and ')} to use the embedded one`;
}
