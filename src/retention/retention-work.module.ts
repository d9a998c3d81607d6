import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { AttemptStatesModule } from '../delivery/attempt-states.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { BodyRetention } from './body-retention.service.js';
import { DayDropper } from './day-dropper.service.js';
import { ErasureWork } from './erasure-work.service.js';

/** What a process with the role `dispatcher` does of it. */
@Module({
  imports: [ChannelsModule, IdempotencyModule, AttemptStatesModule],
  providers: [BodyRetention, DayDropper, ErasureWork],
  exports: [BodyRetention, DayDropper, ErasureWork],
})
export class RetentionWorkModule {}
