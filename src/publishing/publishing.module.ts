import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { NotificatiesController } from './notificaties.controller.js';
import { NotificationReader } from './notification-reader.service.js';
import { PublishService } from './publish.service.js';
import { ReplaceScheduledService } from './replace-scheduled.service.js';

@Module({
  imports: [EndpointsModule, ChannelsModule, SubscriptionsModule, LedgerModule, QueueModule],
  controllers: [NotificatiesController],
  providers: [NotificationReader, PublishService, ReplaceScheduledService],
  exports: [NotificationReader],
})
export class PublishingModule {}
