import { Module } from '@nestjs/common';
import { AttemptStatesModule } from '../delivery/attempt-states.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { DeliveriesController } from './deliveries.controller.js';
import { DeliveryReader } from './delivery-reader.service.js';
import { LedgerSearch } from './search.service.js';

/** The operator's view of deliveries, and the ways to retry and cancel them. */
@Module({
  imports: [AttemptStatesModule, SubscriptionsModule],
  controllers: [DeliveriesController],
  providers: [DeliveryReader, LedgerSearch],
  exports: [DeliveryReader, LedgerSearch],
})
export class DeliveriesModule {}
