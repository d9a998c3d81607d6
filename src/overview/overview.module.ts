import { Module } from '@nestjs/common';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { ActivityController } from './activity.controller.js';
import { InstallationController } from './installation.controller.js';
import { OverviewController } from './overview.controller.js';
import { Overview } from './overview.service.js';

/**
 * The whole installation at a glance, for operators. Does not import HealthModule: that one stops before all others,
 * which its place in app.module.ts makes it do as long as no module depends on it.
 */
@Module({
  imports: [EndpointsModule, SubscriptionsModule, QueueModule],
  controllers: [OverviewController, ActivityController, InstallationController],
  providers: [Overview],
})
export class OverviewModule {}
