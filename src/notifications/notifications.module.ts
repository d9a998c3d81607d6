import { Module } from '@nestjs/common';
import { DeliveriesModule } from '../deliveries/deliveries.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { NotificationReader } from './notification-reader.service.js';
import { NotificationsController } from './notifications.controller.js';

/** The operator's view of notifications. */
@Module({
  imports: [DeliveriesModule, SubscriptionsModule],
  controllers: [NotificationsController],
  providers: [NotificationReader],
})
export class NotificationsModule {}
