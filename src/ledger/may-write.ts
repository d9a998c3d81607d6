/**
 * Until when a batch may begin to be written. From then on its publishers may have been told that it was not stored,
 * and might repeat it: a statement that reaches the server later, from the buffer of a connection that was frozen,
 * writes nothing.
 */
export interface Deadline {
  /** Milliseconds since 1970, by the ledger's clock. */
  at: number;
  /** Whether it has passed, as this process sees it. */
  hasPassed: () => boolean;
}

export const noDeadline: Deadline = { at: Infinity, hasPassed: () => false };

/** A batch that was not written, because its deadline had passed. */
export class DeadlinePassed extends Error {}

/** The findings of an accepting statement, whether it writes or not. */
export interface Found {
  version: string;
  is_in_time: boolean;
  now_ms: string;
}

/**
 * The conditions on which an accepting statement writes: the catalogue is at `$version`, and `$begin_by_ms` has not
 * passed. They are read once, so that all of the statement is written, or nothing. Not `now()`: in a transaction that
 * is when it began.
 */
export const current = `current AS MATERIALIZED (
    SELECT version, clock_timestamp() <= to_timestamp($begin_by_ms::float8 / 1000) AS is_in_time FROM catalogue
  )`;
export const mayWrite = '(SELECT version FROM current WHERE is_in_time) = $version';
/** Of `current`, as `Found`. */
export const found = 'version, is_in_time, (extract(epoch FROM now()) * 1000)::bigint AS now_ms';

/** @throws {DeadlinePassed} */
export function readFound({ version, is_in_time, now_ms }: Found): { version: number; queuedAt: number } {
  if (!is_in_time) throw new DeadlinePassed();
  return { version: Number(version), queuedAt: Number(now_ms) };
}
