import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { PublishingModule } from '../publishing/publishing.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { DryRunService } from './dry-run.service.js';
import { ExplainController } from './explain.controller.js';
import { FiltersPreviewController } from './filters-preview.controller.js';
import { ExplanationReader } from './explanation-reader.service.js';

/** Why a notification went where it went, and what other filters would get. */
@Module({
  imports: [ChannelsModule, EndpointsModule, PublishingModule, SubscriptionsModule],
  controllers: [ExplainController, FiltersPreviewController],
  providers: [DryRunService, ExplanationReader],
})
export class ExplainingModule {}
