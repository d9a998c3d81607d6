import { Module } from '@nestjs/common';
import { EndpointsModule } from '../endpoints/endpoints.module.js';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Outbound } from '../outbound/outbound.service.js';
import { QueueModule } from '../queue/queue.module.js';
import { QueueProgress } from '../queue/queue-progress.service.js';
import { RetryPolicyModule } from '../retry-policy/retry-policy.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { AttemptStatesModule } from './attempt-states.module.js';
import { ChunkLoader } from './chunk-loader.service.js';
import { Decider } from './decider.service.js';
import { DeliveryRecords } from './delivery-records.service.js';
import { DeliverService } from './deliver.service.js';
import { LateLocks } from './late-locks.service.js';
import { Sender } from './sender.service.js';
import { Turns } from './turns.service.js';
import { WebhookClient } from './webhook-client.js';
import { HttpWebhookClient } from './webhook-client.http.js';
import { Worker } from './worker.service.js';

/** The sending path: what a process with the role `worker` does. */
@Module({
  imports: [
    EndpointsModule,
    LedgerModule,
    QueueModule,
    IdempotencyModule,
    SubscriptionsModule,
    RetryPolicyModule,
    AttemptStatesModule,
  ],
  providers: [
    QueueProgress,
    ChunkLoader,
    AttemptReporter,
    Sender,
    Decider,
    DeliveryRecords,
    Turns,
    LateLocks,
    DeliverService,
    Worker,
    {
      provide: WebhookClient,
      inject: [Outbound, LedgerClock],
      useFactory: (outbound: Outbound, ledgerClock: LedgerClock): WebhookClient =>
        new HttpWebhookClient(outbound, () => ledgerClock.now()),
    },
  ],
})
export class DeliveryModule {}
