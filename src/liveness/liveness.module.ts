import { Global, Module } from '@nestjs/common';
import { EndedSiblings } from './ended-siblings.service.js';
import { Heartbeat } from './heartbeat.service.js';
import { LedgerClock } from './ledger-clock.service.js';

/** Global: every part that has deliveries in hand needs the id of its process and the ledger's clock. */
@Global()
@Module({ providers: [LedgerClock, Heartbeat, EndedSiblings], exports: [LedgerClock, Heartbeat] })
export class LivenessModule {}
