import { Inject, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { IdempotencyStore } from './idempotency-store.js';
import { PostgresIdempotencyStore } from './idempotency-store.postgres.js';
import { RedisIdempotencyStore } from './idempotency-store.redis.js';
import { Idempotency } from './idempotency.service.js';

/** Locks and seals in Redis where REDIS_URL names one, in Postgres otherwise. */
@Module({
  providers: [
    Idempotency,
    {
      provide: IdempotencyStore,
      inject: [REDIS, Postgres, Heartbeat],
      useFactory: (redis: Redis | null, postgres: Postgres, heartbeat: Heartbeat): IdempotencyStore =>
        redis ? new RedisIdempotencyStore(redis, heartbeat.processId) : new PostgresIdempotencyStore(postgres),
    },
  ],
  exports: [Idempotency, IdempotencyStore],
})
export class IdempotencyModule implements OnApplicationBootstrap, OnApplicationShutdown {
  constructor(@Inject(IdempotencyStore) private readonly store: IdempotencyStore) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.store.announce();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.store.withdraw();
  }
}
