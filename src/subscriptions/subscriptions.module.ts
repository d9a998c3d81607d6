import { Module } from '@nestjs/common';
import { ChannelsModule } from '../channels/channels.module.js';
import { RequestKeysModule } from '../request-keys/request-keys.module.js';
import { AbonnementController } from './abonnement.controller.js';
import { CallbackProof } from './callback-proof.service.js';
import { OwnSigningKeysController } from './own-signing-keys.controller.js';
import { ProvedChanges } from './proved-changes.service.js';
import { SigningKeysController } from './signing-keys.controller.js';
import { SigningKeys } from './signing-keys.service.js';
import { SubscriptionAllowance } from './subscription-allowance.service.js';
import { SubscriptionAnswers } from './subscription-answers.service.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionStateController } from './subscription-state.controller.js';
import { SubscriptionsController } from './subscriptions.controller.js';
import { SubscriptionsService } from './subscriptions.service.js';

@Module({
  imports: [ChannelsModule, RequestKeysModule],
  controllers: [
    AbonnementController,
    OwnSigningKeysController,
    SubscriptionsController,
    SubscriptionStateController,
    SigningKeysController,
  ],
  providers: [
    CallbackProof,
    ProvedChanges,
    SigningKeys,
    SubscriptionAllowance,
    SubscriptionAnswers,
    SubscriptionDirectory,
    SubscriptionsService,
  ],
  exports: [SigningKeys, SubscriptionAllowance, SubscriptionAnswers, SubscriptionDirectory, SubscriptionsService],
})
export class SubscriptionsModule {}
