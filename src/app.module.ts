import { Module, type DynamicModule } from '@nestjs/common';
import { ActivityModule } from './activity/activity.module.js';
import { AlertsModule } from './alerts/alerts.module.js';
import { AuditEntriesModule } from './audit-entries/audit-entries.module.js';
import { AuditModule } from './audit/audit.module.js';
import { AuthModule } from './auth/auth.module.js';
import { CatalogueModule } from './catalogue/catalogue.module.js';
import { ChannelsModule } from './channels/channels.module.js';
import { ConfigurationFileModule } from './configuration-file/configuration-file.module.js';
import { ConfigModule } from './config/config.module.js';
import type { Settings } from './config/settings.js';
import { CredentialsModule } from './credentials/credentials.module.js';
import { DeadLettersModule } from './dead-letters/dead-letters.module.js';
import { DeliveriesModule } from './deliveries/deliveries.module.js';
import { DeliveryModule } from './delivery/delivery.module.js';
import { DispatchingModule } from './dispatching/dispatching.module.js';
import { EndpointsModule } from './endpoints/endpoints.module.js';
import { ExplainingModule } from './explaining/explaining.module.js';
import { HealthModule } from './health/health.module.js';
import { ClockModule } from './infra/clock.module.js';
import { PostgresModule } from './infra/postgres/postgres.module.js';
import type { Postgres } from './infra/postgres/postgres.js';
import { RedisModule } from './infra/redis/redis.module.js';
import { LiveEventsModule } from './live-events/live-events.module.js';
import { LiveListenersModule } from './live-events/live-listeners.module.js';
import { LivenessModule } from './liveness/liveness.module.js';
import { NotificationsModule } from './notifications/notifications.module.js';
import { OperationalEventsModule } from './operational-events/operational-events.module.js';
import { OverviewModule } from './overview/overview.module.js';
import { OutboundModule } from './outbound/outbound.module.js';
import { PublishingModule } from './publishing/publishing.module.js';
import { ReplaysModule } from './replays/replays.module.js';
import { RetentionModule } from './retention/retention.module.js';
import { PullingModule } from './pulling/pulling.module.js';
import { RetryPolicyModule } from './retry-policy/retry-policy.module.js';
import type { SecretCipher } from './secrets/secret-cipher.service.js';
import { SecretsModule } from './secrets/secrets.module.js';
import { SessionsModule } from './sessions/sessions.module.js';
import { SubscriptionsModule } from './subscriptions/subscriptions.module.js';
import { noSiblings, type Siblings } from './supervision/siblings.js';
import { SupervisionModule } from './supervision/supervision.module.js';
import { TestCallsModule } from './test-calls/test-calls.module.js';
import { TelemetryModule } from './telemetry/telemetry.module.js';
import type { Tracer } from './telemetry/tracing.js';

/** The modules of a process, in the order in which a notification passes through them. */
@Module({})
export class AppModule {
  static with(
    settings: Settings,
    postgres: Postgres,
    cipher: SecretCipher,
    tracer: Tracer | undefined,
    siblings: Siblings = noSiblings,
  ): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.with(settings),
        ClockModule,
        PostgresModule.with(postgres),
        SecretsModule.with(cipher),
        TelemetryModule.with(tracer),
        SupervisionModule.with(siblings),
        LivenessModule,
        OperationalEventsModule,
        LiveEventsModule,
        ActivityModule,
        OutboundModule,
        CredentialsModule,
        RedisModule,
        AuditModule,
        CatalogueModule,
        AuthModule,
        SessionsModule,
        ChannelsModule,
        SubscriptionsModule,
        EndpointsModule,
        RetryPolicyModule,
        ConfigurationFileModule,
        PublishingModule,
        ...(settings.ROLES.includes('worker') ? [DeliveryModule] : []),
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
        ...(settings.ROLES.includes('dispatcher') ? [DispatchingModule.with(true)] : []),
        OverviewModule,
        HealthModule,
      ],
    };
  }
}
