import { Module } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { REDIS } from '../infra/redis/redis.module.js';
import { AttemptStates } from './attempt-states.js';
import { InProcessAttemptStates } from './attempt-states.in-process.js';
import { RedisAttemptStates } from './attempt-states.redis.js';

/** Workers write them, operators read them. */
@Module({
  providers: [
    {
      provide: AttemptStates,
      inject: [REDIS],
      useFactory: (redis: Redis | null): AttemptStates =>
        redis ? new RedisAttemptStates(redis) : new InProcessAttemptStates(),
    },
  ],
  exports: [AttemptStates],
})
export class AttemptStatesModule {}
