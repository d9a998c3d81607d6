import { Module } from '@nestjs/common';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { RequestKeysModule } from '../request-keys/request-keys.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { MeantCounter } from './count-meant.service.js';
import { EndingController } from './ending.controller.js';
import { ReplayRunner } from './replay-runner.service.js';
import { ReplaysController } from './replays.controller.js';
import { Replays } from './replays.service.js';

/** Deliveries that an operator has sent again, cancelled or closed by selection. */
@Module({
  imports: [SubscriptionsModule, EndpointsModule, RequestKeysModule],
  controllers: [ReplaysController, EndingController],
  providers: [MeantCounter, Replays, ReplayRunner],
  exports: [Replays, ReplayRunner],
})
export class ReplaysModule {}
