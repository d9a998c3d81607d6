import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { AbonnementController } from './abonnement.controller.js';
import { CallbackProbe } from './callback-probe.service.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionsController } from './subscriptions.controller.js';
import { SubscriptionsService } from './subscriptions.service.js';

@Module({
  imports: [ChannelsModule],
  controllers: [AbonnementController, SubscriptionsController],
  providers: [CallbackProbe, SubscriptionDirectory, SubscriptionsService],
  exports: [SubscriptionDirectory, SubscriptionsService],
})
export class SubscriptionsModule {}
