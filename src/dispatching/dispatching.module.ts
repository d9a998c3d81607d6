import { Module, type DynamicModule } from '@nestjs/common';
import { IdempotencyModule } from '../idempotency/idempotency.module.js';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { QueuePosition } from '../queue/queue-position.service.js';
import { DispatchLoop } from './dispatch-loop.service.js';
import { Dispatcher } from './dispatcher.service.js';
import { Upkeep } from './upkeep.service.js';

@Module({ imports: [LedgerModule, QueueModule, IdempotencyModule] })
export class DispatchingModule {
  /** @param looping false for the one run from the command line */
  static with(looping: boolean): DynamicModule {
    return {
      module: DispatchingModule,
      providers: [QueuePosition, Dispatcher, Upkeep, ...(looping ? [DispatchLoop] : [])],
      exports: [Dispatcher, Upkeep],
    };
  }
}
