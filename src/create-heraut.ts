import type { LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule } from './app.module.js';
import type { Settings } from './config/settings.js';
import { serveConsole } from './console/serve-console.js';
import { entities } from './entities.js';
import { serveFrontPage, type Link } from './health/front-page.js';
import { createHttpAdapter, useHttpRules } from './infra/http/http-server.js';
import { ownMetrics } from './infra/http/metrics.js';
import { logAllBy } from './infra/logging/log-all-by.js';
import { warnOfNewer } from './infra/postgres/migrated-by-newer.js';
import { Postgres } from './infra/postgres/postgres.js';
import { giveRoomToKnownCallers } from './auth/known-callers.js';
import { superuserSecret } from './auth/superuser-secret.js';
import { notificatiesApi, serveResourceList } from './nrc/notificaties-api.js';
import { nrcDialect } from './nrc/nrc-dialect.js';
import { serveProblemPages } from './nrc/problem-pages.js';
import { adminApi } from './openapi/admin-api.js';
import { publishDirectly } from './publishing/direct-route.js';
import { openSecrets } from './secrets/open-secrets.js';
import { serveDocumentation } from './openapi/serve-documentation.js';
import { noSiblings } from './supervision/siblings.js';
import type { Supervised } from './supervision/supervised.cluster.js';
import { startTracing } from './telemetry/start-tracing.js';

/**
 * Heraut in this process, migrated and set up, not yet listening. `close` stops it in good order.
 * @throws {DataDirectoryInUse} when another process has the embedded database
 * @throws {CannotConnect} when the database cannot be used
 * @throws {KeyRingRefused} when stored secrets cannot be decrypted
 */
export async function createHeraut(
  settings: Settings,
  logger: LoggerService,
  supervised?: Supervised,
): Promise<NestFastifyApplication> {
  logAllBy(logger);
  const postgres = await Postgres.open(settings, entities);
  try {
    await postgres.migrate(logger);
    if (supervised?.isFirst ?? true) await warnOfNewer(postgres.dataSource, logger);
    const cipher = await openSecrets(settings, postgres, logger);
    const tracer = await startTracing(settings, logger);
    const isApi = settings.ROLES.includes('api');
    const app = await NestFactory.create<NestFastifyApplication>(
      AppModule.with({
        settings: { ...settings, SUPERUSER_SECRET: superuserSecret(settings) },
        postgres,
        cipher,
        tracer,
        siblings: supervised?.siblings ?? noSiblings,
      }),
      createHttpAdapter({
        settings,
        dialect: nrcDialect,
        isServed: isApi ? undefined : isForOperators,
        metrics: supervised ? () => supervised.metrics() : ownMetrics,
      }),
      { logger, bodyParser: false, abortOnError: false },
    );
    useHttpRules(app);
    giveRoomToKnownCallers(app);
    publishDirectly(app);
    if (isApi) {
      serveDescriptions(app);
      serveConsole(app);
    }
    serveFrontPage(app, linksOf(settings));
    return app;
  } catch (error) {
    await postgres.close();
    throw postgres.explain(error);
  }
}

/** The routes of a process without the role `api`: those that operators and their monitoring need. */
const isForOperators = (route: string): boolean =>
  route === '/' || route.startsWith('/health/') || route === '/metrics';

/** Routes beside the controllers: the documents of the two APIs, and the pages about their errors. */
function serveDescriptions(app: NestFastifyApplication): void {
  serveDocumentation(app, [notificatiesApi, adminApi]);
  serveResourceList(app);
  serveProblemPages(app);
}

/** The links of the front page: only to what the same port serves. */
function linksOf({ ROLES, ADMIN_PORT }: Settings): Link[] {
  const hasOnePort = ADMIN_PORT === undefined;
  const apis = ROLES.includes('api') ? [notificatiesApi, ...(hasOnePort ? [adminApi] : [])] : [];
  return [
    ...(ROLES.includes('api') && hasOnePort ? [{ title: 'Console', path: '/console/' }] : []),
    ...apis.map(({ outline, page }) => ({ title: outline.info.title, path: page })),
    { title: 'Health, part by part', path: '/health/ready' },
    ...(hasOnePort ? [{ title: 'Metrics', path: '/metrics' }] : []),
  ];
}
