import { readSettings, settingsSchema, type Settings } from '../config/settings.js';

/**
 * Texts, and lists of them, that are no secret. Of any other only that it is set is shown: a new setting is hidden
 * until it is here.
 */
const shownTexts: ReadonlySet<string> = new Set<keyof Settings>([
  'HOST',
  'ADMIN_HOST',
  'ROLES',
  'PROCESSES',
  'DATA_DIR',
  'QUEUE_PREFIX',
  'SUPERUSER_CLIENT_ID',
  'SECRET_KEYS_FILE',
  'CONSOLE_URL',
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_AUTH',
  'OIDC_SCOPES',
  'OIDC_ROLE_CLAIM',
  'OIDC_ROLES',
  'OIDC_LABEL',
  'CONFIG_FILE',
  'FINAL_STATUSES',
  'CALLBACK_NETWORKS',
  'CALLBACK_ALLOWED_NETWORKS',
  'CALLBACK_SCHEMES',
  'CALLBACK_PORTS',
  'EGRESS_PROXY_EXCEPTIONS',
  'TTL_IDEMPOTENCY_PER_CUSTOMER_SEC',
  'AT_LEAST_ONCE_SENDING_CUSTOMERS',
  'EXPORT_DIR',
  'ALERT_MAIL_TO',
  'EMAIL_HOST',
  'EMAIL_HOST_USER',
  'DEFAULT_FROM_EMAIL',
  'DOCUMENTATION_LINK_CHECK',
  'ALLOWED_HOSTS',
  'PATH_PREFIX',
  'CORS_ALLOWED_ORIGINS',
  'OTEL_SERVICE_NAME',
  'OTEL_TRACES_SAMPLER',
  'LOG_LEVEL',
]);

/** URLs with a user and a password, or a path that only those may know who use it: where they lead is shown. */
const shownHosts: ReadonlySet<string> = new Set<keyof Settings>([
  'DATABASE_URL',
  'AMQP_URL',
  'REDIS_URL',
  'EGRESS_PROXY_URL',
  'ALERT_WEBHOOK_URL',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
]);

export interface ShownSetting {
  name: string;
  /** Null: it is hidden. */
  value: string | null;
  /** Null: it has none. */
  default: string | null;
}

/** Those that differ from their defaults, in the order of the documentation. */
export function settingsToShow(settings: Settings): ShownSetting[] {
  const defaults = readSettings({}) as Record<string, unknown>;
  return Object.entries(settings as Record<string, unknown>)
    .filter(([name, value]) => value !== undefined && textOf(value) !== textOf(defaults[name]))
    .sort(([one], [other]) => order.indexOf(one) - order.indexOf(other))
    .map(([name, value]) => ({
      name,
      value: shown(name, value),
      default: textOf(defaults[name]) ?? null,
    }));
}

const order = Object.keys(settingsSchema.shape);

function shown(name: string, value: unknown): string | null {
  if (typeof value === 'number' || typeof value === 'boolean' || shownTexts.has(name)) return textOf(value) ?? null;
  if (!shownHosts.has(name)) return null;
  const { protocol, host } = new URL(value as string);
  return `${protocol}//${host}`;
}

/** As it would be written in the environment; undefined is no text. */
const textOf = (value: unknown): string | undefined => {
  if (Array.isArray(value)) return value.map(textOf).join(',');
  return typeof value === 'string' ? value : JSON.stringify(value);
};
