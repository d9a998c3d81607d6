import 'reflect-metadata';
import type { Settings } from './config/settings.js';
import { createHeraut } from './create-heraut.js';
import { orSayWhy } from './infra/http/cannot-listen.js';
import type { JsonLogger } from './infra/logging/json-logger.js';
import type { Supervised } from './supervision/supervised.cluster.js';

/** After this, deliveries still in flight are left to the next start: the ledger has them. */
const longestShutdownMs = 14_500;

/** Does the work of this process' roles until a signal, or the end of its supervisor, stops it in good order. */
export async function serve(settings: Settings, logger: JsonLogger, supervised: Supervised | undefined): Promise<void> {
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
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  supervised?.onSupervisorGone(() => stop('supervisor-gone'));
  await orSayWhy(app.listen(settings.PORT, settings.HOST), { host: 'HOST', port: 'PORT' });
  logger.log({ event: 'process.listening', url: await app.getUrl(), roles: settings.ROLES });
}
