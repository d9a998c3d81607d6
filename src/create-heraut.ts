import type { LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { setupAdminDocs } from './admin-docs.js';
import { AppModule } from './app.module.js';
import { ApplicationEntity } from './auth/application.entity.js';
import { ChannelEntity } from './channels/channel.entity.js';
import type { Settings } from './config/settings.js';
import { createHttpAdapter, useHttpRules } from './infra/http/http-server.js';
import { Postgres } from './infra/postgres/postgres.js';
import { superuserSecret } from './superuser-secret.js';
import { SubscriptionEntity } from './subscriptions/subscription.entity.js';

export const entities = [ApplicationEntity, ChannelEntity, SubscriptionEntity];

/**
 * Heraut in this process, migrated and set up, not yet listening. `close` stops it in good order.
 * @throws {DataDirectoryInUse} when another process has the embedded database
 */
export async function createHeraut(settings: Settings, logger: LoggerService): Promise<NestFastifyApplication> {
  const postgres = await Postgres.open(settings, entities);
  try {
    for (const migration of await postgres.migrate()) logger.log({ event: 'ledger.migrated', migration });
    const app = await NestFactory.create<NestFastifyApplication>(
      AppModule.with({ ...settings, SUPERUSER_SECRET: superuserSecret(settings) }, postgres),
      createHttpAdapter(settings),
      { logger, bodyParser: false, abortOnError: false },
    );
    useHttpRules(app);
    if (settings.ROLES.includes('api')) setupAdminDocs(app);
    return app;
  } catch (error) {
    await postgres.close();
    throw error;
  }
}
