import 'reflect-metadata';
import type { INestApplicationContext } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import type { Settings } from './config/settings.js';
import { createHeraut } from './create-heraut.js';
import { endAfterCrash } from './end-after-crash.js';
import { addressToListenOn, orSayWhy } from './infra/http/cannot-listen.js';
import type { JsonLogger } from './infra/logging/json-logger.js';
import { Postgres } from './infra/postgres/postgres.js';
import { ShutdownDelay } from './shutdown-delay.js';
import type { StopSignals } from './stop-signals.js';
import type { Supervised } from './supervision/supervised.cluster.js';

/** After this, deliveries still in flight are left to the next start: the ledger has them. */
const longestShutdownMs = 14_500;

/** A start that has not ended by then, after a signal, waits for somebody: a server that says nothing, or a lock. */
const startGoesOnMs = 1000;

/**
 * Does the work of this process' roles until a signal, or the end of its supervisor, stops it in good order. A signal
 * that comes while it starts ends it with status 0 as later. At once until the parts begin to work: it may be waiting
 * for another process to migrate, for up to an hour, and a server undoes what a connection that is gone had not
 * committed. From then on it may have deliveries in hand: it is closed in order when the start has ended, unless that
 * waits for somebody. The embedded database waits for nobody and is always closed in order, because one that is being
 * made would be left half made. A start that fails is closed in order as well, for the same reasons.
 */
export async function serve(
  settings: Settings,
  logger: JsonLogger,
  supervised: Supervised | undefined,
  signals: StopSignals,
): Promise<void> {
  const isEmbedded = !settings.DATABASE_URL;
  const end = (status: number, event: string) => {
    logger.log({ event });
    void logger.flush().then(() => process.exit(status));
  };
  signals.mean(
    isEmbedded
      ? undefined
      : (reason) => {
          logger.log({ event: 'process.stopping', reason });
          end(0, 'process.stopped');
        },
  );
  const app = await createHeraut(settings, logger, supervised);
  endAfterCrash(app.get(Postgres), logger);
  const delay = new ShutdownDelay(app, settings);
  let [isStopping, isStarting, isListening] = [false, false, false];
  let limit: NodeJS.Timeout | undefined;
  const close = async () => {
    clearTimeout(limit);
    limit = setTimeout(() => end(1, 'process.stopped-late'), longestShutdownMs);
    const error = await app.close().catch((failure: unknown) => ({ failure }));
    clearTimeout(limit);
    if (error) logger.error({ event: 'process.stop-failed', error: error.failure });
    end(error ? 1 : 0, 'process.stopped');
  };
  const stop = (reason: string) => {
    if (isStopping) return delay.signalAgain();
    isStopping = true;
    logger.log({ event: 'process.stopping', reason });
    // Closing would take away from the parts what they are about to use: the start would fail.
    if (isListening) void delay.pass().then(close);
    else if (!isStarting) void close();
    else if (!isEmbedded) limit = setTimeout(() => end(0, 'process.stopped'), startGoesOnMs);
  };
  signals.mean(stop);
  supervised?.onSupervisorGone(() => {
    delay.end(); // the supervisor accepted the connections: no caller comes any more
    stop('supervisor-gone');
  });
  if (isStopping) return;
  isStarting = true;
  try {
    await app.init().catch((error: unknown) => {
      throw app.get(Postgres).explain(error);
    });
    if (!isStopping) {
      const listening = app.listen(settings.PORT, addressToListenOn(settings.HOST));
      await orSayWhy(listening, { host: 'HOST', port: 'PORT' });
    }
  } catch (error) {
    isStopping = true; // a signal would end it with status 0
    clearTimeout(limit);
    await closeAfterFailure(app, logger);
    throw error;
  }
  isStarting = false;
  if (isStopping) return close();
  isListening = true;
  logger.log({ event: 'process.listening', url: await app.getUrl(), roles: settings.ROLES });
}

/**
 * Its parts may be at work already: deliveries in hand would be left without an outcome, and sent twice. The cause of
 * the failure is what an operator has to see, so this ends in any case, and the process after it.
 */
async function closeAfterFailure(app: INestApplicationContext, logger: JsonLogger): Promise<void> {
  logger.log({ event: 'process.stopping', reason: 'start-failed' });
  const limit = new AbortController();
  const tooLate = pause(longestShutdownMs, { event: 'process.stopped-late' }, { signal: limit.signal });
  const trouble = await Promise.race([
    app.close().catch((error: unknown) => ({ event: 'process.stop-failed', error })),
    tooLate,
  ]);
  limit.abort();
  if (trouble) logger.error(trouble);
  await logger.flush();
}
