import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { ChannelDirectory } from '../../src/channels/channel-directory.service.js';
import { readSettings } from '../../src/config/settings.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import type { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { SubscriptionAllowance } from '../../src/subscriptions/subscription-allowance.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';

/** The allowance of an application by the default settings. */
export const subscriptionAllowance = (catalogue: Catalogue, directory: SubscriptionDirectory): SubscriptionAllowance =>
  new SubscriptionAllowance({ settings: readSettings({}) }, catalogue, directory, noChannels);

const noChannels = { find: () => undefined } as unknown as ChannelDirectory;

export function subscriptionsService(
  catalogue: Catalogue,
  directory: SubscriptionDirectory,
  postgres: Postgres,
  events: OperationalEvents,
  cipher: SecretCipher,
): SubscriptionsService {
  const allowance = subscriptionAllowance(catalogue, directory);
  return new SubscriptionsService(catalogue, directory, postgres, events, cipher, allowance);
}
