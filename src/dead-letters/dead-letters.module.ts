import { Module } from '@nestjs/common';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { DeadLetterGroups } from './dead-letter-groups.service.js';
import { DeadLettersController } from './dead-letters.controller.js';
import { KeptGroups } from './kept-groups.service.js';

/** For operators: deliveries that ended without success, by what they died of. */
@Module({
  imports: [SubscriptionsModule],
  controllers: [DeadLettersController],
  providers: [DeadLetterGroups, KeptGroups],
})
export class DeadLettersModule {}
