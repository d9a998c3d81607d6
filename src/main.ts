import { ConfigurationRefused } from './configuration-file/configuration-refused.js';
import { settingsNotRead } from './config/of-open-notificaties.js';
import { InvalidSettings, readSettings } from './config/settings.js';
import { endWithError } from './end-with-error.js';
import { CannotConnect } from './infra/cannot-connect.js';
import { CannotListen } from './infra/http/cannot-listen.js';
import { JsonLogger } from './infra/logging/json-logger.js';
import { openStandardOutput } from './infra/logging/standard-output.js';
import { DataDirectoryInUse } from './infra/postgres/directory-lock.js';
import { KeyRingRefused } from './secrets/key-ring.js';
import { version } from './infra/version.js';
import { StopSignals } from './stop-signals.js';
import { countProcesses, thisMachine } from './supervision/process-plan.js';
import { Supervised } from './supervision/supervised.cluster.js';
import { Supervisor } from './supervision/supervisor.cluster.js';

const usage =
  'Usage: node dist/main.js [--version]\nStarts Heraut with the settings of its environment (docs/configuration.md). The command line is dist/heraut.js.';

async function main(): Promise<void> {
  const supervised = Supervised.join();
  if (!supervised && process.argv.length > 2) return answerWords(process.argv.slice(2));
  const settings = readSettings(process.env);
  const count = supervised ? 1 : countProcesses(settings, process.env, thisMachine());
  if (count > 1) {
    const output = openStandardOutput(1); // the processes have collected their lines already
    const logger = JsonLogger.open(settings, output);
    tellNotRead(logger);
    const status = await new Supervisor(count, settings, process.env, logger, output).run();
    await logger.flush();
    process.exit(status);
  }
  const signals = new StopSignals(() => process.exit(0)); // nothing has begun
  const logger = JsonLogger.open(settings);
  if (!supervised) tellNotRead(logger);
  // Only now: the supervisor needs none of it.
  const { serve } = await import('./serve.js');
  await serve(settings, supervised ? logger.ofProcess(process.pid) : logger, supervised, signals);
}

/** A broker takes none: it may have been asked for its version on a machine where it is not to start. */
function answerWords(words: string[]): void {
  if (words.length !== 1 || words[0] !== '--version') throw new InvalidSettings(usage);
  console.log(version);
}

/** Once: where there is a supervisor, it alone. */
function tellNotRead(logger: JsonLogger): void {
  const names = settingsNotRead(process.env);
  if (names.length > 0) logger.warn({ event: 'settings.not-read', names });
}

main().catch((error: unknown) =>
  endWithError(error, [
    InvalidSettings,
    CannotConnect,
    DataDirectoryInUse,
    KeyRingRefused,
    ConfigurationRefused,
    CannotListen,
  ]),
);
