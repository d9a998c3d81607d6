import { Module } from '@nestjs/common';
import { LiveEventsController } from './live-events.controller.js';
import { LiveListeners } from './live-listeners.service.js';

/** Live events, as operators follow them. */
@Module({ controllers: [LiveEventsController], providers: [LiveListeners] })
export class LiveListenersModule {}
