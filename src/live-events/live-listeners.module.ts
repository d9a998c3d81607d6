import { Module } from '@nestjs/common';
import { LiveEventsController } from './live-events.controller.js';
import { LiveListeners } from './live-listeners.service.js';

/** What operators see of live events. */
@Module({ controllers: [LiveEventsController], providers: [LiveListeners] })
export class LiveListenersModule {}
