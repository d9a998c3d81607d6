import { Injectable } from '@nestjs/common';
import { readAlertRules } from '../alerts/alert-rules-rows.js';
import type { AlertRules } from '../alerts/alert-rules.js';
import { ApplicationsService, type ShownApplication } from '../auth/applications.service.js';
import type { Channel } from '../channels/channel.js';
import { ChannelsService } from '../channels/channels.service.js';
import { Config } from '../config/config.module.js';
import type { Credentials } from '../credentials/credentials.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { LongWork } from '../infra/long-work.js';
import type { TlsIdentity } from '../outbound/outbound.service.js';
import { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { SecretNames, type SecretReference } from './secret-names.js';

export type Exported = Record<'applications' | 'channels' | 'subscriptions', object[]> &
  Record<'retryPolicy' | 'alertRules', object>;

/**
 * The present state, as a file: with references in the places of secrets, and without fields that have their default.
 */
@Injectable()
export class Export {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly channels: ChannelsService,
    private readonly subscriptions: SubscriptionsService,
    private readonly policies: RetryPolicies,
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {}

  /** They are not of the catalogue: its edition stays where they are changed. */
  alertRules(): Promise<AlertRules> {
    return readAlertRules(queryOf(this.postgres.dataSource.manager));
  }

  async read(alertRules: AlertRules): Promise<Exported> {
    const names = new SecretNames();
    const applications = await this.applications.list();
    const channels = await this.channels.list();
    const subscriptions = [];
    const owners = new Set([this.config.settings.SUPERUSER_CLIENT_ID, ...applications.map(({ clientId }) => clientId)]);
    const work = new LongWork();
    for (const each of await this.subscriptions.list()) {
      await work.yieldIfDue();
      subscriptions.push({
        ...exportSubscription(each, owners, names),
        ...said({ retryPolicy: this.policies.override(each.id) }),
      });
    }
    return {
      applications: applications.map((each) => exportApplication(each, names)),
      channels: channels.map(exportChannel),
      subscriptions,
      retryPolicy: { ...this.policies.general },
      alertRules,
    };
  }
}

const exportApplication = (
  { clientId, label, scopes, isSuperuser, alertEmail }: ShownApplication,
  names: SecretNames,
) => ({
  clientId,
  label,
  ...said({ scopes, isSuperuser, alertEmail }),
  secret: names.of('application', clientId, 'secret'),
});

const exportChannel = ({
  name,
  documentationLink,
  filters,
  deduplication,
  maxAgeSeconds,
  bodyRetentionDays,
}: Channel) => ({
  name,
  ...said({ documentationLink, filters, deduplication, maxAgeSeconds, bodyRetentionDays }),
});

function exportSubscription(subscription: Subscription, owners: ReadonlySet<string>, names: SecretNames) {
  const { id, ownerClientId, callbackUrl, channels, deliveryGuarantee, ordering, pausedAt, signingKeys } = subscription;
  const { timeoutSeconds, maxConcurrency, ratePerSecond, alertEmail, credentials, auth, unreadable } = subscription;
  const secret: NameSecret = (what) => names.of('subscription', id, what);
  const keys = signingKeys.filter(({ endsAt }) => endsAt === null);
  return {
    id,
    // Of an application that was removed: elsewhere there is none that it could name.
    ...(owners.has(ownerClientId) && { ownerClientId }),
    callbackUrl,
    ...said({
      channels: channels.map(({ channel, filters }) => ({ channel, ...said({ filters }) })),
      deliveryGuarantee,
      timeoutSeconds,
      maxConcurrency,
      ratePerSecond,
      alertEmail,
      ordering: ordering === 'none' ? null : ordering,
      isPaused: pausedAt !== null,
    }),
    // Credentials that cannot be decrypted here are left out, and so stay as they are.
    ...(unreadable === null && exportCredentials(credentials, auth, secret)),
    ...said({
      signingKeys: keys.map(({ scheme }, index) => ({ scheme, secret: secret(`signing key ${index + 1}`) })),
    }),
  };
}

type NameSecret = (what: string) => SecretReference;

function exportCredentials({ tls, headers = {}, ...authorization }: Credentials, auth: string, secret: NameSecret) {
  return {
    authorization: exportAuthorization(authorization, auth, secret),
    ...said({
      tls: tls && exportTls(tls, 'tls key', secret),
      headers: Object.fromEntries(Object.keys(headers).map((name) => [name, secret(`header ${name}`)])),
    }),
  };
}

function exportAuthorization(authorization: Credentials, auth: string, secret: NameSecret): object {
  switch (authorization.kind) {
    case 'verbatim':
      return { kind: 'verbatim', auth: auth === '' ? '' : secret('auth') };
    case 'zgw': {
      const { kind, clientId, userId, userRepresentation } = authorization;
      return { kind, clientId, ...said({ userId, userRepresentation }), secret: secret('secret') };
    }
    case 'oauth2': {
      const { kind, tokenUrl, clientId, scope, clientAuthentication, tokenTls } = authorization;
      return {
        kind,
        tokenUrl,
        clientId,
        clientSecret: secret('client secret'),
        clientAuthentication,
        ...said({ scope, tokenTls: tokenTls && exportTls(tokenTls, 'token tls key', secret) }),
      };
    }
  }
}

const exportTls = ({ certificate, key, authority }: TlsIdentity, name: string, secret: NameSecret) =>
  said({ certificate, authority, key: key === undefined ? undefined : secret(name) });

/** Without what says nothing: null, false, and what is empty. */
const said = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => !isNothing(value)));

const isNothing = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);
