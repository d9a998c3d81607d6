import { Module } from '@nestjs/common';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { PublishingModule } from '../publishing/publishing.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { DryRunService } from './dry-run.service.js';
import { ExplainController } from './explain.controller.js';
import { ExplanationReader } from './explanation-reader.service.js';

/** Why a notification went where it went. */
@Module({
  imports: [EndpointsModule, PublishingModule, SubscriptionsModule],
  controllers: [ExplainController],
  providers: [DryRunService, ExplanationReader],
})
export class ExplainingModule {}
