import type { ModuleMetadata } from '@nestjs/common';
import { ActivityModule } from './activity/activity.module.js';
import { AuditModule } from './audit/audit.module.js';
import { CatalogueModule } from './catalogue/catalogue.module.js';
import { ConfigModule } from './config/config.module.js';
import type { Settings } from './config/settings.js';
import { CredentialsModule } from './credentials/credentials.module.js';
import { ClockModule } from './infra/clock.module.js';
import { PostgresModule } from './infra/postgres/postgres.module.js';
import type { Postgres } from './infra/postgres/postgres.js';
import { RedisModule } from './infra/redis/redis.module.js';
import { LiveEventsModule } from './live-events/live-events.module.js';
import { LivenessModule } from './liveness/liveness.module.js';
import { OperationalEventsModule } from './operational-events/operational-events.module.js';
import { OutboundModule } from './outbound/outbound.module.js';
import type { SecretCipher } from './secrets/secret-cipher.service.js';
import { SecretsModule } from './secrets/secrets.module.js';
import type { Siblings } from './supervision/siblings.js';
import { SupervisionModule } from './supervision/supervision.module.js';
import { TelemetryModule } from './telemetry/telemetry.module.js';
import type { Tracer } from './telemetry/tracing.js';

/** Opened before the modules of a process are made, and given to them. */
export interface Foundation {
  settings: Settings;
  postgres: Postgres;
  cipher: SecretCipher;
  /** Undefined: nothing is traced. */
  tracer: Tracer | undefined;
  siblings: Siblings;
}

/** The modules that every process has, in the order in which they start. */
export const foundationModules = ({
  settings,
  postgres,
  cipher,
  tracer,
  siblings,
}: Foundation): NonNullable<ModuleMetadata['imports']> => [
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
];
