import { Module } from '@nestjs/common';
import { LedgerModule } from '../ledger/ledger.module.js';
import { QueueModule } from '../queue/queue.module.js';
import { Enqueuer } from './enqueuer.service.js';

@Module({ imports: [LedgerModule, QueueModule], providers: [Enqueuer], exports: [Enqueuer] })
export class EnqueueingModule {}
