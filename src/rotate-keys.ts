import 'reflect-metadata';
import { InvalidSettings, readSettings } from './config/settings.js';
import { endAfterCrash } from './end-after-crash.js';
import { endWithError } from './end-with-error.js';
import { CannotConnect } from './infra/cannot-connect.js';
import { JsonLogger } from './infra/logging/json-logger.js';
import { logAllBy } from './infra/logging/log-all-by.js';
import { DataDirectoryInUse } from './infra/postgres/directory-lock.js';
import { requireDatabase } from './infra/postgres/embedded-is-there.js';
import { warnOfNewer } from './infra/postgres/migrated-by-newer.js';
import { Postgres } from './infra/postgres/postgres.js';
import { KeyRingRefused } from './secrets/key-ring.js';
import { openCipher } from './secrets/open-secrets.js';
import { UnreadableSecret } from './secrets/secret-cipher.service.js';
import { plain, rewriteSecrets, sampleByKey } from './secrets/stored-secrets.js';
import { endBySignal, StopSignals } from './stop-signals.js';

/** Encrypts every stored secret with the first key of the ring, so that the other keys can be removed from it. */
async function main(): Promise<void> {
  new StopSignals(endBySignal); // a server undoes what was not committed
  if (process.argv.length > 2)
    throw new InvalidSettings(
      'Usage: npm run rotate-keys\nEncrypts every stored secret with the first of the SECRET_KEYS. It takes settings, and no words.',
    );
  const settings = readSettings(process.env);
  requireDatabase(settings);
  const logger = JsonLogger.open(settings);
  logAllBy(logger);
  const postgres = await Postgres.open(settings, []);
  endAfterCrash(postgres, logger);
  try {
    await postgres.migrate(logger);
    await warnOfNewer(postgres.dataSource, logger);
    const cipher = await openCipher(settings, postgres);
    if (cipher.keyId === undefined) throw new KeyRingRefused('There is no key: set SECRET_KEYS or SECRET_KEYS_FILE.');
    const others = async () => {
      const keys = (await sampleByKey(postgres)).map(({ keyId }) => keyId);
      return [...new Set([plain, ...keys])].filter((key) => key !== cipher.keyId);
    };
    let rewritten = 0;
    await rewriteSecrets(postgres, cipher, await others(), (place, count) => {
      rewritten += count;
      logger.log({ event: 'secrets.rotating', place, rewritten });
    });
    // Encrypted with another key: a process whose first key is another one wrote these in the meantime.
    const left = (await others()).filter((key) => key !== plain);
    logger.log({ event: 'secrets.rotated', key: cipher.keyId, rewritten, otherKeysInUse: left });
    if (left.length > 0) process.exitCode = 1;
  } finally {
    await postgres.close();
    await logger.flush();
  }
}

main().catch((error: unknown) =>
  endWithError(error, [InvalidSettings, CannotConnect, DataDirectoryInUse, KeyRingRefused, UnreadableSecret]),
);
