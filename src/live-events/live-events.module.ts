import { Global, Module } from '@nestjs/common';
import { LiveEvents } from './live-events.service.js';

/** Global: each capability reports its own. */
@Global()
@Module({ providers: [LiveEvents], exports: [LiveEvents] })
export class LiveEventsModule {}
