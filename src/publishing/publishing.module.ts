import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { EnqueueingModule } from '../enqueueing/enqueueing.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { NotificatiesController } from './notificaties.controller.js';
import { PublishService } from './publish.service.js';

@Module({
  imports: [ChannelsModule, SubscriptionsModule, LedgerModule, EnqueueingModule],
  controllers: [NotificatiesController],
  providers: [PublishService],
})
export class PublishingModule {}
