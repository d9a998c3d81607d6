import { Module } from '@nestjs/common';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { Arrivals } from './arrivals.service.js';
import { Fetches } from './fetches.service.js';
import { PullController } from './pull.controller.js';
import { PullService } from './pull.service.js';

/** Notifications that subscribers fetch themselves. */
@Module({ imports: [SubscriptionsModule], controllers: [PullController], providers: [Arrivals, Fetches, PullService] })
export class PullingModule {}
