import { Global, Module } from '@nestjs/common';
import { Heartbeat } from './heartbeat.service.js';

/** Global: every part that has deliveries in hand needs the id of its process and the ledger's clock. */
@Global()
@Module({ providers: [Heartbeat], exports: [Heartbeat] })
export class LivenessModule {}
