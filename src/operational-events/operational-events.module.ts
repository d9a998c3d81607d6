import { Global, Module } from '@nestjs/common';
import { OperationalEvents } from './operational-events.service.js';

/** Global: each capability reports its own. */
@Global()
@Module({ providers: [OperationalEvents], exports: [OperationalEvents] })
export class OperationalEventsModule {}
