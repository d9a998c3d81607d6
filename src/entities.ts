import { ApplicationEntity } from './auth/application.entity.js';
import { ChannelEntity } from './channels/channel.entity.js';
import { SubscriptionEntity } from './subscriptions/subscription.entity.js';

/** The tables that TypeORM reads and writes; the others have statements of their own. */
export const entities = [ApplicationEntity, ChannelEntity, SubscriptionEntity];
