import { Inject, Module } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Config } from '../config/config.module.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { DeliveryQueue } from '../queue/delivery-queue.js';
import { QueueModule } from '../queue/queue.module.js';
import { HealthChecks } from './health-checks.service.js';
import { HealthController } from './health.controller.js';
import {
  alertsAreSent,
  migrationsHaveRun,
  postgresWorks,
  queueTakesAll,
  rabbitMqWorks,
  redisIsInUse,
  roleIsAlive,
} from './part-checks.js';

@Module({ imports: [QueueModule], controllers: [HealthController], providers: [HealthChecks] })
export class HealthModule {
  constructor(
    checks: HealthChecks,
    { settings }: Config,
    postgres: Postgres,
    heartbeat: Heartbeat,
    queue: DeliveryQueue,
    @Inject(REDIS) redis: Redis | null,
  ) {
    checks.register(postgresWorks(postgres, heartbeat));
    checks.register(migrationsHaveRun(postgres));
    if (settings.AMQP_URL) {
      checks.register(rabbitMqWorks(queue));
      checks.register(queueTakesAll(queue));
    }
    if (redis) checks.register(redisIsInUse(redis, postgres));
    if (settings.ALERT_WEBHOOK_URL || settings.EMAIL_HOST) checks.register(alertsAreSent(postgres));
    checks.register(roleIsAlive(heartbeat, 'worker', 'nothing is delivered'));
    checks.register(roleIsAlive(heartbeat, 'dispatcher', 'nothing is retried'));
  }
}
