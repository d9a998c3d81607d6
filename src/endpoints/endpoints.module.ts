import { Module } from '@nestjs/common';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { Admission } from './admission.service.js';
import { EndpointsController } from './endpoints.controller.js';
import { HoldRule } from './hold-rule.service.js';
import { SituationsController } from './situations.controller.js';
import { OpenEndpoints } from './open-endpoints.service.js';
import { SubscriptionListController } from './subscription-list.controller.js';

@Module({
  imports: [SubscriptionsModule],
  controllers: [EndpointsController, SituationsController, SubscriptionListController],
  providers: [OpenEndpoints, HoldRule, Admission],
  exports: [OpenEndpoints, HoldRule, Admission],
})
export class EndpointsModule {}
