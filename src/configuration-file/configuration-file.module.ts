import { Module } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module.js';
import { ChannelsModule } from '../channels/channels.module.js';
import { RetryPolicyModule } from '../retry-policy/retry-policy.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { ApplicationsSection } from './applications.section.js';
import { CallbackRules } from './callback-rules.js';
import { ChannelsSection } from './channels.section.js';
import { ConfigurationAtStart } from './configuration-at-start.service.js';
import { ConfigurationTextController } from './configuration-text.controller.js';
import { ConfigurationController } from './configuration.controller.js';
import { ConfigurationService } from './configuration.service.js';
import { Export } from './export.service.js';
import { KeptExports } from './kept-exports.service.js';
import { SubscriptionsSection } from './subscriptions.section.js';

/** The audit module goes before it at the start: it makes the partition that what is changed then is noted in. */
@Module({
  imports: [AuditModule, ChannelsModule, SubscriptionsModule, RetryPolicyModule],
  controllers: [ConfigurationController, ConfigurationTextController],
  providers: [
    ApplicationsSection,
    CallbackRules,
    ChannelsSection,
    ConfigurationAtStart,
    ConfigurationService,
    Export,
    KeptExports,
    SubscriptionsSection,
  ],
})
export class ConfigurationFileModule {}
