import { Module } from '@nestjs/common';
import { IdempotencyStore } from '../idempotency/idempotency-store.js';
import { PostgresIdempotencyStore } from '../idempotency/idempotency-store.postgres.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { TestCallsController } from './test-calls.controller.js';
import { TestCalls } from './test-calls.service.js';

/** Its locks are in Postgres, so that a process without a worker needs no Redis. */
@Module({
  imports: [SubscriptionsModule],
  controllers: [TestCallsController],
  providers: [
    TestCalls,
    {
      provide: IdempotencyStore,
      inject: [Postgres],
      useFactory: (postgres: Postgres): IdempotencyStore => new PostgresIdempotencyStore(postgres),
    },
  ],
})
export class TestCallsModule {}
