import { timeOfId } from '../ledger/partitions.js';
import { quoted } from './read-pages.js';
import { familyOf, readTables, type Database } from './tables.js';
import { kept, replaced } from './what-moves.js';

/** It was not moved, and nothing was changed. The message is for an operator. */
export class MoveRefused extends Error {}

/**
 * @param families the tables that are to be copied, without those that are only partitions of one
 * @throws {MoveRefused} where the Postgres has rows of its own, or Heraut runs on it
 */
export async function refuseOccupied(database: Database, families: ReadonlySet<string>): Promise<void> {
  const tables = (await readTables(database)).map(({ name }) => name);
  const own = tables.filter((name) => families.has(familyOf(name)) && !replaced.has(name) && !kept.has(familyOf(name)));
  const occupied = await namesWhere(own, (name) => `EXISTS (SELECT FROM ${quoted(name)})`, database);
  if (occupied.length > 0) {
    const names = [...new Set(occupied.map(familyOf))].join(', ');
    throw new MoveRefused(
      `The Postgres of DATABASE_URL has rows of its own (${names}), and nothing is moved into those: make an empty database and name it in DATABASE_URL.`,
    );
  }
  const running = tables.filter((name) => name === 'process');
  const isRunning = await namesWhere(running, () => `EXISTS (SELECT FROM process WHERE expires_at > now())`, database);
  if (isRunning.length > 0)
    throw new MoveRefused(
      'Heraut runs on the Postgres of DATABASE_URL, or did until seconds ago: stop it, and run this again after ten seconds.',
    );
}

async function namesWhere(names: string[], condition: (name: string) => string, database: Database): Promise<string[]> {
  if (names.length === 0) return [];
  const text = names.map((name) => `SELECT '${name}' AS name WHERE ${condition(name)}`).join(' UNION ALL ');
  return ((await database.query(text)) as { name: string }[]).map(({ name }) => name);
}

/**
 * New ids are of Postgres' time: with lower ones than there are, a subscriber that fetches would not get those that lie
 * before its cursor.
 * @throws {MoveRefused} where the clock of the Postgres is behind what it is to get
 */
export async function refuseClockBehind(source: Database, target: Database): Promise<void> {
  const [newest] = (await source.query('SELECT id FROM notification ORDER BY id DESC LIMIT 1')) as { id: string }[];
  const [clock] = (await target.query('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms')) as [
    { ms: number },
  ];
  const behindMs = newest ? timeOfId(newest.id) - clock.ms : 0;
  if (behindMs > 0)
    throw new MoveRefused(
      `The clock of Postgres is ${Math.ceil(behindMs / 1000)} s behind the newest notification: set it right, or run this again when so much time has passed.`,
    );
}
