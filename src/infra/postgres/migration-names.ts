import type { DataSource } from 'typeorm';
import { migrations } from '../../../migrations/index.js';

/** Of this version, in the order they run; the table `migrations` has those that have run. */
export const migrationNames: readonly string[] = migrations.map((Migration) => new Migration().name);

/** Those that have run and that this version does not know, in the order they ran: a newer one has migrated the database. */
export async function findUnknownMigrations(database: Pick<DataSource, 'query'>): Promise<string[]> {
  const rows: { name: string }[] = await database.query(
    'SELECT name FROM migrations WHERE name <> ALL ($1) ORDER BY id',
    [migrationNames],
  );
  return rows.map(({ name }) => name);
}
