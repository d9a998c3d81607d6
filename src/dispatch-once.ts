import 'reflect-metadata';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { InvalidSettings, readSettings } from './config/settings.js';
import { DeliveryModule } from './delivery/delivery.module.js';
import { DispatchingModule } from './dispatching/dispatching.module.js';
import { endAfterCrash } from './end-after-crash.js';
import { endWithError } from './end-with-error.js';
import { entities } from './entities.js';
import { foundationModules, type Foundation } from './foundation.js';
import { CannotConnect } from './infra/cannot-connect.js';
import { JsonLogger } from './infra/logging/json-logger.js';
import { logAllBy } from './infra/logging/log-all-by.js';
import { DataDirectoryInUse } from './infra/postgres/directory-lock.js';
import { requireDatabase } from './infra/postgres/embedded-is-there.js';
import { warnOfNewer } from './infra/postgres/migrated-by-newer.js';
import { Postgres } from './infra/postgres/postgres.js';
import { connectionAdvice } from './infra/rabbitmq/connection-advice.js';
import { OneRun } from './one-run.js';
import { DeliveryQueue } from './queue/delivery-queue.js';
import { countHeld } from './ledger/measure.js';
import { KeyRingRefused } from './secrets/key-ring.js';
import { openSecrets } from './secrets/open-secrets.js';
import { QueueModule } from './queue/queue.module.js';
import { SessionsModule } from './sessions/sessions.module.js';
import { endBySignal, StopSignals } from './stop-signals.js';
import { noSiblings } from './supervision/siblings.js';
import { startTracing } from './telemetry/start-tracing.js';

/**
 * The dispatcher alone; where the queue is in this process's memory, with a worker, or no worker would take its
 * deliveries.
 */
@Module({})
class DispatchOnceModule {
  static with(foundation: Foundation): DynamicModule {
    return {
      module: DispatchOnceModule,
      imports: [
        ...foundationModules(foundation),
        // Guards of the controllers in the modules below ask for it.
        SessionsModule,
        QueueModule,
        ...(foundation.settings.AMQP_URL ? [] : [DeliveryModule]),
        DispatchingModule.with(false),
      ],
    };
  }
}

/** Of a run that has done nothing, by no fault: EX_TEMPFAIL of sysexits.h. */
const skippedStatus = 75;

/** A terminal and npm both pass one on: what comes so soon is the same one. */
const sameSignalMs = 3000;

async function main(): Promise<void> {
  const signals = new StopSignals(endBySignal); // nothing has begun
  const words = process.argv.slice(2);
  if (words.length !== 1 || words[0] !== '--once') {
    throw new InvalidSettings(
      'Usage: npm run dispatch -- --once\nHands out once what is due, then ends. For ever: ROLES=dispatcher npm start',
    );
  }
  const settings = readSettings({ ...process.env, ROLES: undefined });
  settings.ROLES = settings.AMQP_URL ? ['dispatcher'] : ['worker', 'dispatcher'];
  requireDatabase(settings);
  const logger = JsonLogger.open(settings);
  logAllBy(logger);
  const postgres = await Postgres.open(settings, entities);
  endAfterCrash(postgres, logger);
  if (!(await postgres.migrateUnlessAnotherDoes(logger))) {
    // Runs of cron would pile up behind it, for up to an hour.
    process.exitCode = skippedStatus;
    logger.warn({ event: 'dispatch.skipped', because: 'another process migrates' });
    await postgres.close();
    return logger.flush();
  }
  await warnOfNewer(postgres.dataSource, logger);
  const cipher = await openSecrets(settings, postgres, logger);
  const tracer = await startTracing(settings, logger);
  const module = DispatchOnceModule.with({ settings, postgres, cipher, tracer, siblings: noSiblings });
  const app = await NestFactory.createApplicationContext(module, { logger });
  const stopping = new AbortController();
  let firstSignalAt = Infinity;
  signals.mean((signal) => {
    if (performance.now() - firstSignalAt > sameSignalMs) endBySignal(signal);
    firstSignalAt = Math.min(firstSignalAt, performance.now());
    stopping.abort();
  });
  try {
    const { trouble } = app.get(DeliveryQueue);
    if (trouble !== undefined) throw new CannotConnect('RabbitMQ', trouble, connectionAdvice(trouble));
    const done = await new OneRun(app, logger, stopping.signal).run();
    if (done.failedTasks.length > 0) process.exitCode = 1;
    logger.log({ event: 'dispatch.done', ...done, held: await countHeld(postgres) });
  } finally {
    await app.close(); // waits for deliveries in flight
    await logger.flush();
  }
}

main().catch((error: unknown) =>
  endWithError(error, [InvalidSettings, CannotConnect, DataDirectoryInUse, KeyRingRefused]),
);
