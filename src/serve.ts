import 'reflect-metadata';
import type { Settings } from './config/settings.js';
import { createHeraut } from './create-heraut.js';
import { orSayWhy } from './infra/http/cannot-listen.js';
import type { JsonLogger } from './infra/logging/json-logger.js';
import type { StopSignals } from './stop-signals.js';
import type { Supervised } from './supervision/supervised.cluster.js';

/** After this, deliveries still in flight are left to the next start: the ledger has them. */
const longestShutdownMs = 14_500;

/**
 * Does the work of this process' roles until a signal, or the end of its supervisor, stops it in good order. A signal that comes while it starts
 * ends it at once, with status 0 as later: it may be waiting for another process to migrate, for up to an hour, and a server undoes what a
 * connection that is gone had not committed. The embedded database waits for nobody and is closed in order, because one that is being made would
 * be left half made.
 */
export async function serve(
  settings: Settings,
  logger: JsonLogger,
  supervised: Supervised | undefined,
  signals: StopSignals,
): Promise<void> {
  const isEmbedded = !settings.DATABASE_URL;
  signals.mean(
    isEmbedded
      ? undefined
      : (reason) => {
          logger.log({ event: 'process.stopping', reason });
          logger.log({ event: 'process.stopped' });
          void logger.flush().then(() => process.exit(0));
        },
  );
  const app = await createHeraut(settings, logger, supervised && (() => supervised.metrics()), supervised?.siblings);
  let isStopping = false;
  const stop = (reason: string) => {
    if (isStopping) return;
    isStopping = true;
    logger.log({ event: 'process.stopping', reason });
    const late = setTimeout(() => end(1, 'process.stopped-late'), longestShutdownMs);
    app.close().then(
      () => end(0, 'process.stopped'),
      (error: unknown) => {
        logger.error({ event: 'process.stop-failed', error });
        end(1, 'process.stopped');
      },
    );
    const end = (status: number, event: string) => {
      clearTimeout(late);
      logger.log({ event });
      void logger.flush().then(() => process.exit(status));
    };
  };
  signals.mean(stop);
  supervised?.onSupervisorGone(() => stop('supervisor-gone'));
  if (isStopping) return;
  await orSayWhy(app.listen(settings.PORT, settings.HOST), { host: 'HOST', port: 'PORT' });
  logger.log({ event: 'process.listening', url: await app.getUrl(), roles: settings.ROLES });
}
