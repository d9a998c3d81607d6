import { join } from 'node:path';
import type { Settings } from '../config/settings.js';
import { CannotConnect, reasonOf } from '../infra/cannot-connect.js';
import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import { connectionAdvice } from '../infra/postgres/connection-advice.js';
import { DataDirectoryInUse } from '../infra/postgres/directory-lock.js';
import { isEmbeddedThere } from '../infra/postgres/embedded-is-there.js';
import { noteMove } from '../infra/postgres/moved-directory.js';
import { isRefused, sqlState } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { endAllProcesses } from '../liveness/heartbeat.service.js';
import { embeddedKeyRing } from '../secrets/key-file.js';
import type { KeyRing } from '../secrets/key-ring.js';
import { openKeyRing } from '../secrets/open-secrets.js';
import { SecretCipher, UnreadableSecret } from '../secrets/secret-cipher.service.js';
import { readAllSecrets, type Ciphers } from './carry-secrets.js';
import { copyTable, type OnRows } from './copy-table.js';
import { copySequences } from './copy-sequences.js';
import { differenceOf, familyOf, inOrderOfReferences, makingOf, readTables, type Database } from './tables.js';
import { leftBehind, replaced } from './what-moves.js';
import { MoveRefused, refuseClockBehind, refuseOccupied } from './why-not.js';

export interface Moved {
  /** Rows by table, those of its partitions together. */
  counts: ReadonlyMap<string, number>;
  secrets: number;
  /** Of the key that they are encrypted with; undefined: they can be read in the database. */
  keyId: string | undefined;
}

/** It is not known whether everything was moved. The message is for an operator. */
export class MoveInDoubt extends Error {}

/**
 * Copies everything from the embedded database of `DATA_DIR`, which stays as it is, to the Postgres of `DATABASE_URL`,
 * in one transaction.
 * @throws {MoveInDoubt} after every other error nothing was moved
 * @throws {MoveRefused}
 * @throws {CannotConnect}
 */
export async function move(settings: Settings, onRows: OnRows): Promise<Moved> {
  const { DATA_DIR, DATABASE_URL } = settings;
  if (!DATABASE_URL) throw new MoveRefused('Set DATABASE_URL to the Postgres that everything is to be moved to.');
  if (!isEmbeddedThere(DATA_DIR))
    throw new MoveRefused(`There is no embedded database in DATA_DIR (${DATA_DIR}): set DATA_DIR to where it is.`);
  const target = await Postgres.open(settings, []);
  try {
    const source = await openSource(settings);
    try {
      return await moveBetween(source, target, settings, onRows);
    } finally {
      await source.close();
    }
  } finally {
    await target.close();
  }
}

/** @throws {MoveRefused} while Heraut runs on it */
async function openSource(settings: Settings): Promise<Postgres> {
  try {
    return await Postgres.open({ ...settings, DATABASE_URL: undefined }, []);
  } catch (error) {
    if (!(error instanceof DataDirectoryInUse)) throw error;
    const { found, lock } = error;
    const orGone = lock === undefined ? '' : ` If that host is gone for good, delete ${lock} first.`;
    throw new MoveRefused(`${found}. Stop the Heraut that runs on it, and run this again.${orGone}`);
  }
}

/** Without user and password. */
export function nameOf(databaseUrl: string): string {
  const { host, pathname } = new URL(databaseUrl);
  return `the Postgres at ${host}${pathname}`;
}

async function moveBetween(source: Postgres, target: Postgres, settings: Settings, onRows: OnRows): Promise<Moved> {
  const ring = openKeyRing(settings, false);
  const to = new SecretCipher(ring);
  const from: Ciphers = [new SecretCipher(embeddedKeyRing(settings.DATA_DIR, false)), to];
  let takeBack: (() => void) | undefined;
  try {
    await refuseOccupied(target.dataSource, await familiesOf(source.dataSource));
    await source.migrate();
    await target.migrate();
    return await target.upkeep.transaction(async (manager) => {
      const counts = await copyAll(source.dataSource, manager, { from, to }, onRows);
      const secrets = await readAllSecrets(manager, to);
      // Before it is committed: one that was moved and does not say so would be sent twice.
      takeBack = noteMove(settings.DATA_DIR, nameOf(settings.DATABASE_URL!));
      return { counts, secrets, keyId: to.keyId };
    });
  } catch (error) {
    if (takeBack && !isRefused(error)) throw new MoveInDoubt(inDoubt(settings.DATA_DIR), { cause: error });
    takeBack?.();
    throw explained(error, ring);
  }
}

/** All of it is undone with the transaction, except the sequences, which only rise. */
async function copyAll(
  source: Database,
  target: Database,
  ciphers: { from: Ciphers; to: SecretCipher },
  onRows: OnRows,
): Promise<Map<string, number>> {
  // Between two statements the embedded database is read, which may be slow.
  await target.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  // A Heraut that is started on it meanwhile waits for its turn to migrate; one that has just been started can give no
  // sign of life.
  await target.query(`SELECT pg_advisory_xact_lock(${advisoryLocks.migrations})`);
  await target.query('LOCK TABLE process IN SHARE ROW EXCLUSIVE MODE');
  await refuseOccupied(target, await familiesOf(source));
  await refuseClockBehind(source, target);
  const tables = (await readTables(source)).filter(({ name }) => !leftBehind.has(name));
  await makePartitions(tables, target);
  const counts = new Map<string, number>();
  for (const table of inOrderOfReferences(tables)) {
    if (replaced.has(table.name)) await target.query(`DELETE FROM ${table.name}`);
    const count = await copyTable(source, target, table, ciphers, onRows);
    const family = familyOf(table.name);
    counts.set(family, (counts.get(family) ?? 0) + count);
  }
  // No process of the source is alive: the lock on its directory proves it. The deliveries that they had in hand are
  // recovered at the start, as after a restart.
  await target.query(endAllProcesses.text);
  await copySequences(source, target);
  return counts;
}

const familiesOf = async (database: Database): Promise<ReadonlySet<string>> =>
  new Set((await readTables(database)).map(({ name }) => familyOf(name)).filter((name) => !leftBehind.has(name)));

/** @throws {MoveRefused} where the tables are still not the same */
async function makePartitions(tables: Awaited<ReturnType<typeof readTables>>, target: Database): Promise<void> {
  const before = new Set((await readTables(target)).map(({ name }) => name));
  for (const { name } of tables) {
    const making = before.has(name) ? undefined : makingOf(name);
    if (making !== undefined) await target.query(making);
  }
  const there = await readTables(target);
  const names = new Set(tables.map(({ name }) => name));
  const difference =
    differenceOf(tables, there) ??
    differenceOf(
      there.filter(({ name }) => names.has(name)),
      tables,
    );
  if (difference !== undefined)
    throw new MoveRefused(
      `The two databases are not of the same version of Heraut: they differ in ${difference}. Use the newest version that either of them has seen.`,
    );
}

const inDoubt = (directory: string): string =>
  `The connection to Postgres broke at the very end, and whether everything was moved is not known. Count the rows of its table subscription, or channel: where there are any, it was, and Heraut can be started with DATABASE_URL. Where there are none, delete ${join(directory, 'moved-to-postgres')} and run this again.`;

/**
 * Says what an operator can do about an error, where there is anything, and that nothing was moved.
 * @param ring of the settings
 */
function explained(error: unknown, ring: KeyRing): unknown {
  if (error instanceof UnreadableSecret) {
    // An id occurs only once in a ring.
    const advice = ring.has(error.keyId)
      ? 'set SECRET_KEYS (or SECRET_KEYS_FILE) as it was, or give the new key another id and add the old one behind it'
      : 'add that key to secret-keys in DATA_DIR, or to SECRET_KEYS';
    return new MoveRefused(`${error.message}: ${advice}, and run this again. Nothing was moved.`);
  }
  if (sqlState(error) === '53200')
    return new MoveRefused(
      'The lock table of Postgres has no room for all partitions at once: set max_locks_per_transaction to 1024, restart Postgres and run this again.',
    );
  if (error instanceof MoveRefused || error instanceof CannotConnect) return error;
  const advice = connectionAdvice(error);
  if (advice !== undefined) return new CannotConnect('Postgres', error, `${advice} Nothing was moved.`);
  const said = `Nothing was moved: ${reasonOf(error)}. Heraut can be started on DATA_DIR as before. Run this again, and report it where it comes again.`;
  return new Error(said, { cause: error });
}
