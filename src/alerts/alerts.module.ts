import { Module } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { AlertChannels } from './alert-channels.js';
import { AlertLoop } from './alert-loop.service.js';
import { AlertsController } from './alerts.controller.js';
import { NoteSender } from './note-sender.service.js';
import { AlertRounds } from './rounds.service.js';

/** Tells operators, and owners of subscriptions, what is wrong, and when it is over. */
@Module({
  imports: [SubscriptionsModule],
  controllers: [AlertsController],
  providers: [
    {
      provide: AlertChannels,
      inject: [Config, LedgerClock],
      useFactory: ({ settings }: Config, ledgerClock: LedgerClock) => new AlertChannels(settings, ledgerClock),
    },
    AlertRounds,
    NoteSender,
    AlertLoop,
  ],
})
export class AlertsModule {}
