import type { LoggerService } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { migrationNames } from './migration-names.js';

/** For operators. */
export const remedyOfNewer =
  'A newer version has migrated this database. Finish the upgrade of every process. If you go back on purpose: only the version before is sure to work with it, docs/running.md#upgrade.';

/** The process goes on: going back, and an upgrade of one process after the other, must stay possible. */
export async function warnOfNewer(database: Pick<DataSource, 'query'>, logger: LoggerService): Promise<void> {
  const rows: { name: string }[] = await database.query(
    'SELECT name FROM migrations WHERE name <> ALL ($1) ORDER BY id',
    [migrationNames],
  );
  const migrations = rows.map(({ name }) => name);
  if (migrations.length === 0) return;
  logger.warn({ event: 'ledger.migrated-by-newer', migrations, remedy: remedyOfNewer });
}
