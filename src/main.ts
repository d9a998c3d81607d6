import 'reflect-metadata';
import { InvalidSettings, readSettings } from './config/settings.js';
import { createHeraut } from './create-heraut.js';
import { JsonLogger } from './infra/logging/json-logger.js';
import { DataDirectoryInUse } from './infra/postgres/directory-lock.js';

/** After this, deliveries still in flight are left to the next start: the ledger has them. */
const longestShutdownMs = 14_500;

async function main(): Promise<void> {
  const settings = readSettings(process.env);
  const logger = JsonLogger.open(settings);
  const app = await createHeraut(settings, logger);
  let isStopping = false;
  const stop = (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    logger.log({ event: 'process.stopping', signal });
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
  await app.listen(settings.PORT, settings.HOST);
  logger.log({ event: 'process.listening', url: await app.getUrl(), roles: settings.ROLES });
}

main().catch((error: unknown) => {
  // For an operator: the error and its remedy, without a stack where the cause is known.
  const isExpected = error instanceof InvalidSettings || error instanceof DataDirectoryInUse;
  console.error(isExpected ? error.message : error);
  process.exit(1);
});
