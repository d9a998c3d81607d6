import * as z from 'zod';
import { atMost } from '../infra/http/at-most.js';
import { mostDemands } from '../subscriptions/subscription-limits.js';
import { fitScalars } from './fit-scalars.js';

/*
 * The YAML of Open Notificaties' `setup_configuration` (1.16), as far as it has a counterpart here. The names are
 * theirs.
 */

const text = z.string();
/** Left out, the one there is stays. A new item needs it. */
const textThatStays = text.optional();
const optionalText = text.default('');

const credential = z.strictObject({ identifier: text.min(1), secret: text.min(1).optional() });

const kanaal = z.strictObject({
  naam: text.min(1),
  documentatie_link: z.string().optional(),
  filters: z.array(text).optional(),
});

const notifications = z.strictObject({
  notifications_api_service_identifier: z.string().optional(),
  notification_delivery_max_retries: z.number().optional(),
  notification_delivery_retry_backoff: z.number().optional(),
  notification_delivery_retry_backoff_max: z.number().optional(),
  notification_delivery_base_factor: z.number().optional(),
});

const authTypes = ['no_auth', 'api_key', 'zgw', 'oauth2_client_credentials'] as const;

const abonnement = z.strictObject({
  uuid: text,
  callback_url: text,
  auth_type: z.enum(authTypes).default('api_key'),
  auth: textThatStays,
  auth_client_id: optionalText,
  secret: textThatStays,
  oauth2_token_url: optionalText,
  oauth2_scope: optionalText,
  send_cloudevents: z.boolean().default(false),
  kanalen: z
    .array(z.strictObject({ naam: text.min(1), filters: atMost(mostDemands, z.record(z.string(), text)).default({}) }))
    .optional(),
  cloudevent_filters: z
    .array(
      z.union([text, z.strictObject({ type_substring: text, filters: z.record(z.string(), z.unknown()).default({}) })]),
    )
    .default([]),
});

/**
 * Namespaces with a counterpart here: the flag that enables each, and the form of one of its items, or of all of it
 * where it has none.
 */
export const namespaces = {
  vng_api_common_credentials: { flag: 'vng_api_common_credentials_config_enable', item: credential },
  notifications_kanalen_config: { flag: 'notifications_kanalen_config_enable', item: kanaal },
  notifications_config: { flag: 'notifications_config_enable', whole: notifications },
  notifications_abonnementen_config: { flag: 'notifications_abonnementen_config_enable', item: abonnement },
} as const;

export type Credential = z.output<typeof credential>;
export type Kanaal = z.output<typeof kanaal>;
export type NotificationsConfig = z.output<typeof notifications>;
export type OpenAbonnement = z.output<typeof abonnement>;

/** Those that have none, each with its flag and what an operator should know. */
export const withoutCounterpart: Readonly<Record<string, { flag: string; note: string }>> = {
  oidc_db_config_admin_auth: {
    flag: 'oidc_db_config_enable',
    note: 'users sign in to the console by OpenID Connect where OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_ROLES are set: docs/running.md#users',
  },
  zgw_consumers: {
    flag: 'zgw_consumers_config_enable',
    note: 'no other APIs are called: rights are scopes of applications',
  },
  autorisaties_api: {
    flag: 'autorisaties_api_config_enable',
    note: 'no Autorisaties API is asked: rights are scopes of applications',
  },
  notifications_subscriptions_config: {
    flag: 'notifications_subscriptions_config_enable',
    note: 'Heraut has no abonnement of its own at another API, as it has no Autorisaties API to listen to',
  },
  sites_config: {
    flag: 'sites_config_enable',
    note: 'URLs are built from the host of the request; see the setting ALLOWED_HOSTS',
  },
};

const flags: readonly string[] = Object.values({ ...namespaces, ...withoutCounterpart }).map(({ flag }) => flag);

/** Whether a file is one of Open Notificaties, by its keys. */
export const isOpenNotificaties = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.keys(value).some(isOfOpenNotificaties);

/** Whether its `setup_configuration` has this key: a namespace, or the flag of one. */
export const isOfOpenNotificaties = (key: string): boolean =>
  Object.hasOwn(namespaces, key) || Object.hasOwn(withoutCounterpart, key) || flags.includes(key);

/** Whether this key is the flag of a namespace. */
export const isFlag = (key: string): boolean => flags.includes(key);

/** A flag of a file whose references are resolved, as a truth value where it can be read as one. */
export function flagIn(file: Record<string, unknown>, flag: string): unknown {
  const fitted = fitScalars(z.object({ [flag]: z.boolean().optional() }), { [flag]: file[flag] });
  return (fitted as Record<string, unknown>)[flag] ?? false;
}
