import { Module, type DynamicModule } from '@nestjs/common';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { QueuePosition } from '../queue/queue-position.service.js';
import { ReplaysModule } from '../replays/replays.module.js';
import { RetentionWorkModule } from '../retention/retention-work.module.js';
import { RetryPolicyModule } from '../retry-policy/retry-policy.module.js';
import { RefusedCallbacks } from '../subscriptions/refused-callbacks.service.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { DispatchLoop } from './dispatch-loop.service.js';
import { Dispatcher } from './dispatcher.service.js';
import { HeldTooLongRule } from './held-too-long.service.js';
import { Measurements } from './measurements.service.js';
import { Releaser } from './releaser.service.js';
import { UnusedEndpoints } from './unused-endpoints.service.js';
import { Upkeep } from './upkeep.service.js';

@Module({
  imports: [
    LedgerModule,
    QueueModule,
    IdempotencyModule,
    SubscriptionsModule,
    EndpointsModule,
    RetryPolicyModule,
    ReplaysModule,
    RetentionWorkModule,
  ],
})
export class DispatchingModule {
  /** @param looping false for the one run from the command line */
  static with(looping: boolean): DynamicModule {
    return {
      module: DispatchingModule,
      providers: [
        QueuePosition,
        Dispatcher,
        Releaser,
        HeldTooLongRule,
        UnusedEndpoints,
        Upkeep,
        ...(looping ? [Measurements, DispatchLoop, RefusedCallbacks] : []),
      ],
      exports: [Dispatcher, Releaser, Upkeep],
    };
  }
}
