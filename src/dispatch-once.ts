import 'reflect-metadata';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as pause } from 'node:timers/promises';
import { InvalidSettings, readSettings, type Settings } from './config/settings.js';
import { entities } from './create-heraut.js';
import { DeliveryModule } from './delivery/delivery.module.js';
import { Turns } from './delivery/turns.service.js';
import { Worker } from './delivery/worker.service.js';
import { Dispatcher, type Recovered } from './dispatching/dispatcher.service.js';
import { DispatchingModule } from './dispatching/dispatching.module.js';
import { releaseAll, type HeldWork } from './dispatching/release-all.js';
import { Releaser } from './dispatching/releaser.service.js';
import { Upkeep } from './dispatching/upkeep.service.js';
import { endAfterCrash } from './end-after-crash.js';
import { endWithError } from './end-with-error.js';
import { foundationModules } from './foundation.js';
import { CannotConnect } from './infra/cannot-connect.js';
import { Clock } from './infra/clock.js';
import { JsonLogger } from './infra/logging/json-logger.js';
import { DataDirectoryInUse } from './infra/postgres/directory-lock.js';
import { requireDatabase } from './infra/postgres/embedded-is-there.js';
import { warnOfNewer } from './infra/postgres/migrated-by-newer.js';
import { Postgres } from './infra/postgres/postgres.js';
import { connectionAdvice } from './infra/rabbitmq/connection-advice.js';
import { DeliveryQueue, lanes } from './queue/delivery-queue.js';
import { countHeld } from './ledger/measure.js';
import { KeyRingRefused } from './secrets/key-ring.js';
import { openSecrets } from './secrets/open-secrets.js';
import type { SecretCipher } from './secrets/secret-cipher.service.js';
import { QueueModule } from './queue/queue.module.js';
import { ReplayRunner } from './replays/replay-runner.service.js';
import { SessionsModule } from './sessions/sessions.module.js';
import { endBySignal, StopSignals } from './stop-signals.js';
import { noSiblings } from './supervision/siblings.js';
import { startTracing } from './telemetry/start-tracing.js';
import type { Tracer } from './telemetry/tracing.js';

/**
 * The dispatcher alone; where the queue is in this process's memory, with a worker, or no worker would take its
 * deliveries.
 */
@Module({})
class DispatchOnceModule {
  static with(settings: Settings, postgres: Postgres, cipher: SecretCipher, tracer: Tracer | undefined): DynamicModule {
    return {
      module: DispatchOnceModule,
      imports: [
        ...foundationModules(settings, postgres, cipher, tracer, noSiblings),
        // Guards of the controllers in the modules below ask for it.
        SessionsModule,
        QueueModule,
        ...(settings.AMQP_URL ? [] : [DeliveryModule]),
        DispatchingModule.with(false),
      ],
    };
  }
}

/** Between two looks at what is still in this process. */
const betweenLooksMs = 20;
/** Beyond the time that one call may take: its outcome is written to the ledger, and the next look comes after that. */
const patienceMs = 5000;

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
  const postgres = await Postgres.open(settings, entities);
  endAfterCrash(postgres, logger);
  await postgres.migrate();
  await warnOfNewer(postgres.dataSource, logger);
  const cipher = await openSecrets(settings, postgres, logger);
  const tracer = await startTracing(settings, logger);
  const module = DispatchOnceModule.with(settings, postgres, cipher, tracer);
  const app = await NestFactory.createApplicationContext(module, { logger });
  const dispatcher = app.get(Dispatcher);
  const queue = app.get(DeliveryQueue);
  const stopping = new AbortController();
  let firstSignalAt = Infinity;
  signals.mean((signal) => {
    if (performance.now() - firstSignalAt > sameSignalMs) endBySignal(signal);
    firstSignalAt = Math.min(firstSignalAt, performance.now());
    stopping.abort();
  });
  try {
    const { trouble } = queue;
    if (trouble !== undefined) throw new CannotConnect('RabbitMQ', trouble, connectionAdvice(trouble));
    const releaser = app.get(Releaser);
    const work: HeldWork = {
      release: () => releaser.releaseHeld(stopping.signal),
      isAnyInHand: async () => queue.process !== null && !(await isAllSent(queue, app.get(Worker), app.get(Turns))),
      findLeft: () => releaser.findLeft(),
    };
    const longestCallMs = settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000;
    let [dispatched, released, recovered] = [0, 0, 0];
    const failed = new Set<string>();
    const note = ({ deliveries, failedRules }: Recovered) => {
      recovered += deliveries;
      for (const rule of failedRules) failed.add(rule);
    };
    const handOutAll = async () => {
      note(await dispatcher.recover(stopping.signal));
      await app.get(ReplayRunner).stepAll(stopping.signal);
      const before = dispatched;
      await dispatcher.handOutDue(stopping.signal, (soFar) => {
        dispatched = before + soFar;
        logger.log({ event: 'dispatch.progress', dispatched });
      });
      const ofHeld = await releaseAll(work, app.get(Clock), longestCallMs + patienceMs, stopping.signal);
      released += ofHeld;
      if (queue.process !== null) await emptied(queue, stopping.signal);
    };
    // Before: it may be time for them while it sends the others.
    const areUndecided = await dispatcher.sendingEnded.anyUndecided();
    await handOutAll();
    for (const task of await app.get(Upkeep).once(stopping.signal)) failed.add(task);
    // Last: a run that may take less long would do nothing but wait.
    if (areUndecided) {
      note(await dispatcher.endSending(stopping.signal));
      if (!stopping.signal.aborted) await handOutAll();
    }
    if (failed.size > 0) process.exitCode = 1;
    const held = await countHeld(postgres);
    logger.log({ event: 'dispatch.done', dispatched, released, held, recovered, failedTasks: [...failed] });
  } finally {
    await app.close(); // waits for deliveries in flight
    await logger.flush();
  }
}

/**
 * Nothing is in the queue, and nothing in hand: a delivery that ends passes its turn on to the next one about the same
 * object, which is sent by this process as well. Closing sooner would have each run send one of them; and it would cut
 * a call that takes longer than closing may, in every run.
 */
async function isAllSent(queue: DeliveryQueue, worker: Worker, turns: Turns): Promise<boolean> {
  // In this order: what leaves the queue is in hand at once, and what gets a turn is in the queue before the turn
  // counts as passed on.
  return (await isEmpty(queue)) && worker.isIdle && turns.isIdle;
}

/** When this process is told to stop, the next run hands out again what is left in the queue. */
async function emptied(queue: DeliveryQueue, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted && !(await isEmpty(queue))) await pause(betweenLooksMs);
}

async function isEmpty(queue: DeliveryQueue): Promise<boolean> {
  const depths = await Promise.all(lanes.map((lane) => queue.depth(lane)));
  return depths.every((depth) => depth === 0);
}

main().catch((error: unknown) =>
  endWithError(error, [InvalidSettings, CannotConnect, DataDirectoryInUse, KeyRingRefused]),
);
