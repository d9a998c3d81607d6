import { Global, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Config } from '../../config/config.module.js';
import { openRedis } from './redis-connection.js';

/** Token of the Redis connection; null where REDIS_URL is not set. */
export const REDIS = Symbol('REDIS');

@Global()
@Module({
  providers: [
    {
      provide: REDIS,
      inject: [Config],
      useFactory: ({ settings }: Config): Redis | null => (settings.REDIS_URL ? openRedis(settings.REDIS_URL) : null),
    },
  ],
  exports: [REDIS],
})
export class RedisModule implements OnApplicationShutdown {
  constructor(@Inject(REDIS) private readonly redis: Redis | null) {}

  onApplicationShutdown(): void {
    this.redis?.disconnect();
  }
}
