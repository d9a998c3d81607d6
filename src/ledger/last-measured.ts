import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { Measured } from './measure.js';
import type { Troubled } from './measure-troubled.js';

/** Measured by a dispatcher, and left in the ledger for processes that do not measure. */
export interface Measurements {
  ledger: Measured;
  /** The subscriptions in most trouble, that with most first. */
  subscriptions: Troubled[];
  size: {
    /** Of the whole database. */
    bytes: number;
  };
}

export type LastMeasured = {
  [Name in keyof Measurements]?: {
    /** By the ledger's clock. */
    at: Date;
    found: Measurements[Name];
  };
};

const leaveItem = statement(
  'leave-measurement',
  `INSERT INTO measurement (name, measured_at, found) VALUES ($name, now(), $found::jsonb)
   ON CONFLICT (name) DO UPDATE SET measured_at = EXCLUDED.measured_at, found = EXCLUDED.found`,
);

/** Of several dispatchers, the last one counts. */
export async function recordMeasured<Name extends keyof Measurements>(
  postgres: Postgres,
  name: Name,
  found: Measurements[Name],
): Promise<void> {
  await postgres.query(leaveItem, { name, found: JSON.stringify(found) });
}

const readItems = statement('read-measurements', 'SELECT name, measured_at, found FROM measurement');

/** One row for each that was ever made. */
export async function readMeasured(postgres: Postgres): Promise<LastMeasured> {
  const rows = await postgres.queryAside<{ name: string; measured_at: Date; found: unknown }>(readItems);
  return Object.fromEntries(rows.map(({ name, measured_at: at, found }) => [name, { at, found }]));
}
