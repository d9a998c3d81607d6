import type * as z from 'zod';
import type { accessSettings } from './access-settings.js';
import type { deliverySettings } from './delivery-settings.js';
import { roles, type serverSettings } from './server-settings.js';

type Compared = z.output<z.ZodObject<typeof serverSettings & typeof accessSettings & typeof deliverySettings>>;

/** The first setting of each pair makes no sense, or would be left unsigned, without the second. */
export const needs = [
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
 * A call takes less than so many milliseconds: the lease of its delivery outlasts a lock that was left behind and the
 * call, or the delivery could be sent twice.
 */
export const callMsBound = (settings: { DELIVERY_LEASE_MS: number; TTL_LOCK_TIME_LIMIT_MS: number }): number =>
  settings.DELIVERY_LEASE_MS - settings.TTL_LOCK_TIME_LIMIT_MS - leaseSlackMs;

/** Each is right by itself, and may be wrong beside the value of another one. */
export function checkTogether(settings: Compared, context: z.RefinementCtx): void {
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
}
