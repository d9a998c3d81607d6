import { Module, type DynamicModule } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { Config } from '../config/config.module.js';
import type { Role } from '../config/settings.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { REDIS } from '../infra/redis/redis.module.js';
import { Ledger } from '../ledger/ledger.service.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { RetryPolicyModule } from '../retry-policy/retry-policy.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { AttemptStates } from './attempt-states.js';
import { InProcessAttemptStates } from './attempt-states.in-process.js';
import { RedisAttemptStates } from './attempt-states.redis.js';
import { DeliverService } from './deliver.service.js';
import { DeliveriesController } from './deliveries.controller.js';
import { Sender } from './sender.service.js';
import { WebhookClient } from './webhook-client.js';
import { UndiciWebhookClient } from './webhook-client.undici.js';
import { Worker } from './worker.service.js';

@Module({ imports: [LedgerModule, QueueModule, IdempotencyModule, SubscriptionsModule, RetryPolicyModule] })
export class DeliveryModule {
  constructor(subscriptions: SubscriptionsService, ledger: Ledger) {
    subscriptions.onRemoved((manager, id) => ledger.cancelAllOfSubscription(manager, id));
    subscriptions.onDisabled((manager, id) => ledger.failAllOfSubscription(manager, id));
  }

  static with(roles: Role[]): DynamicModule {
    return {
      module: DeliveryModule,
      controllers: [DeliveriesController],
      providers: [
        {
          provide: AttemptStates,
          inject: [REDIS],
          useFactory: (redis: Redis | null): AttemptStates =>
            redis ? new RedisAttemptStates(redis) : new InProcessAttemptStates(),
        },
        ...(roles.includes('worker')
          ? [
              Sender,
              DeliverService,
              Worker,
              {
                provide: WebhookClient,
                inject: [Config],
                useFactory: ({ settings }: Config): WebhookClient => new UndiciWebhookClient(settings),
              },
            ]
          : []),
      ],
    };
  }
}
