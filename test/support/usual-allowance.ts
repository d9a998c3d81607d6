import type { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { SubscriptionAllowance } from '../../src/subscriptions/subscription-allowance.service.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';

/** That of the default settings. */
export const usualAllowance = (catalogue: Catalogue, directory: SubscriptionDirectory): SubscriptionAllowance =>
  new SubscriptionAllowance({ settings: readSettings({}) }, catalogue, directory);
