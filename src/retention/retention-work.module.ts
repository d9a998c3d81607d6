import { Module } from '@nestjs/common';
import { AttemptStatesModule } from '../delivery/attempt-states.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { BodyRetention } from './body-retention.service.js';
import { DayDropper } from './day-dropper.service.js';
import { ErasureWork } from './erasure-work.service.js';

/** The part of retention that a process with the role `dispatcher` does. */
@Module({
  imports: [IdempotencyModule, AttemptStatesModule],
  providers: [BodyRetention, DayDropper, ErasureWork],
  exports: [BodyRetention, DayDropper, ErasureWork],
})
export class RetentionWorkModule {}
