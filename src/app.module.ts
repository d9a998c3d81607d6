import { Module, type DynamicModule } from '@nestjs/common';
import { AlertsModule } from './alerts/alerts.module.js';
import { AuditEntriesModule } from './audit-entries/audit-entries.module.js';
import { AuthModule } from './auth/auth.module.js';
import { ChannelsModule } from './channels/channels.module.js';
import { ConfigurationFileModule } from './configuration-file/configuration-file.module.js';
import { DeadLettersModule } from './dead-letters/dead-letters.module.js';
import { DeliveriesModule } from './deliveries/deliveries.module.js';
import { DeliveryModule } from './delivery/delivery.module.js';
import { DispatchingModule } from './dispatching/dispatching.module.js';
import { EndpointsModule } from './endpoints/endpoints.module.js';
import { ExplainingModule } from './explaining/explaining.module.js';
import { foundationModules, type Foundation } from './foundation.js';
import { HealthModule } from './health/health.module.js';
import { LiveListenersModule } from './live-events/live-listeners.module.js';
import { NotificationsModule } from './notifications/notifications.module.js';
import { OverviewModule } from './overview/overview.module.js';
import { PublishingModule } from './publishing/publishing.module.js';
import { ReplaysModule } from './replays/replays.module.js';
import { RetentionModule } from './retention/retention.module.js';
import { PullingModule } from './pulling/pulling.module.js';
import { RetryPolicyModule } from './retry-policy/retry-policy.module.js';
import { SessionsModule } from './sessions/sessions.module.js';
import { SubscriptionsModule } from './subscriptions/subscriptions.module.js';
import { TestCallsModule } from './test-calls/test-calls.module.js';

/** The modules of a process, in the order in which a notification passes through them. */
@Module({})
export class AppModule {
  static with(foundation: Foundation): DynamicModule {
    const { ROLES } = foundation.settings;
    return {
      module: AppModule,
      imports: [
        ...foundationModules(foundation),
        AuthModule,
        SessionsModule,
        ChannelsModule,
        SubscriptionsModule,
        EndpointsModule,
        RetryPolicyModule,
        ConfigurationFileModule,
        PublishingModule,
        ...(ROLES.includes('worker') ? [DeliveryModule] : []),
        DeliveriesModule,
        TestCallsModule,
        ReplaysModule,
        DeadLettersModule,
        NotificationsModule,
        AuditEntriesModule,
        ExplainingModule,
        LiveListenersModule,
        RetentionModule,
        PullingModule,
        AlertsModule,
        ...(ROLES.includes('dispatcher') ? [DispatchingModule.with(true)] : []),
        OverviewModule,
        HealthModule,
      ],
    };
  }
}
