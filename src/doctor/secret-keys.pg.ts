import type pg from 'pg';
import type { Settings } from '../config/settings.js';
import { statement, valuesOf, type Statement, type Values } from '../infra/postgres/statement.js';
import { KeyRingRefused } from '../secrets/key-ring.js';
import { openCipher } from '../secrets/open-secrets.js';
import { adviceOnKeys } from './embedded-secrets.js';
import { failed, ok, warning, type Finding } from './finding.js';

const name = 'secret-keys';
const tables = statement('tables-with-secrets', `SELECT to_regclass('signing_key') IS NOT NULL AS there`);

/** Whether a process that is started with these settings has the keys of what is stored: it does as the start does. */
export async function examineSecretKeys(client: pg.Client, settings: Settings): Promise<Finding> {
  const query = async <Row>(each: Statement, values: Values = {}): Promise<Row[]> =>
    (await client.query(each.text, valuesOf(each, values))).rows as Row[];
  const [found] = await query<{ there: boolean }>(tables);
  try {
    const nothingStored = { query: () => Promise.resolve([]) };
    const { keyId } = await openCipher(settings, found!.there ? { query } : nothingStored);
    if (keyId !== undefined) return ok(name, `secrets in the database are encrypted, new ones with the key ${keyId}`);
    return warning(
      name,
      'SECRET_KEYS is not set: secrets are readable in the database and its backups.',
      'Set SECRET_KEYS for every process; docs/running.md, Secrets, has the steps.',
    );
  } catch (error) {
    if (!(error instanceof KeyRingRefused)) throw error;
    const [trouble, ...details] = error.message.split('\n').map((line) => line.trim());
    return failed(name, [trouble, ...details.slice(0, -1).map((line) => `${line}.`)].join(' '), adviceOnKeys);
  }
}
