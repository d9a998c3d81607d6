import { Module } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Postgres } from '../infra/postgres/postgres.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { IdempotencyStore } from './idempotency-store.js';
import { PostgresIdempotencyStore } from './idempotency-store.postgres.js';
import { RedisIdempotencyStore } from './idempotency-store.redis.js';
import { RedisOrPostgresIdempotencyStore } from './idempotency-store.redis-or-postgres.js';
import { Idempotency } from './idempotency.service.js';

/** Locks and seals in Redis where REDIS_URL names one and every process can use it, in Postgres otherwise. */
@Module({
  providers: [
    Idempotency,
    {
      provide: IdempotencyStore,
      inject: [REDIS, Postgres, Heartbeat],
      useFactory: (redis: Redis | null, postgres: Postgres, heartbeat: Heartbeat): IdempotencyStore =>
        redis
          ? new RedisOrPostgresIdempotencyStore(new RedisIdempotencyStore(redis, heartbeat.processId), postgres)
          : new PostgresIdempotencyStore(postgres),
    },
  ],
  exports: [Idempotency, IdempotencyStore],
})
export class IdempotencyModule {}
