import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { NotificatiesController } from './notificaties.controller.js';
import { PublicationReader } from './publication-reader.service.js';
import { PublicationReporter } from './publication-reporter.service.js';
import { PublicationRequests } from './publication-requests.service.js';
import { PublishByHandController } from './publish-by-hand.controller.js';
import { PublishService } from './publish.service.js';
import { ReplaceScheduledService } from './replace-scheduled.service.js';

@Module({
  imports: [EndpointsModule, ChannelsModule, SubscriptionsModule, LedgerModule, QueueModule],
  controllers: [NotificatiesController, PublishByHandController],
  providers: [PublicationReader, PublicationReporter, PublicationRequests, PublishService, ReplaceScheduledService],
  exports: [PublicationReader],
})
export class PublishingModule {}
