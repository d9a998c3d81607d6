import { asUuid } from '../infra/uuid-text.js';

const tables = ['notification', 'delivery', 'attempt'] as const;
export type LedgerTable = (typeof tables)[number];

export const dayMs = 86_400_000;

/** Before and behind every id. */
export const lowestId = '00000000-0000-0000-0000-000000000000';
export const highestId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export interface Partition {
  table: LedgerTable;
  name: string;
  /** Lowest notification id of the day. */
  from: string;
  /** Lowest notification id of the next day. */
  to: string;
}

/**
 * The lowest UUIDv7 of a millisecond: its first 48 bits are the time (RFC 9562 §5.7), so a day is a range of ids. The
 * version and variant bits stay zero, which sorts before every real id of that millisecond.
 */
export function lowestIdAt(ms: number): string {
  const hex = ms.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

/** The id before or after that one, which is none of a notification. */
export const idBefore = (id: string): string => toId(toNumber(id) - 1n);
export const idAfter = (id: string): string => toId(toNumber(id) + 1n);

const toNumber = (id: string): bigint => BigInt(`0x${id.replaceAll('-', '')}`);
const toId = (id: bigint): string => asUuid(id.toString(16).padStart(32, '0'));

export const earlierId = (one: string, other: string): string => (one < other ? one : other);
export const laterId = (one: string, other: string): string => (one < other ? other : one);

/** Milliseconds since 1970 at which a UUIDv7 was made. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/**
 * The UTC day a notification was accepted on, in days since 1970. A text that is no id leads to a day that has no
 * partition.
 */
export const dayOfId = (id: string): number => Math.floor((timeOfId(id) || 0) / dayMs);

/** ISO 8601, of a day since 1970. */
export const dateOf = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** The name of the partition of a day, in days since 1970. */
export function partitionOf(table: LedgerTable, day: number): string {
  // Beyond the year 9999 a sign comes first. Ids of that time are no ids of ours, and the table is merely not there.
  const [date] = new Date(day * dayMs).toISOString().split('T');
  return `${table}_${date!.replace(/\D/g, '')}`;
}

/** The partitions of the UTC days from `fromMs` to `toMs`, both included. */
export function partitionsBetween(fromMs: number, toMs: number): Partition[] {
  const partitions: Partition[] = [];
  for (let day = Math.floor(fromMs / dayMs) * dayMs; day <= toMs; day += dayMs) {
    for (const table of tables) {
      const name = partitionOf(table, day / dayMs);
      partitions.push({ table, name, from: lowestIdAt(day), to: lowestIdAt(day + dayMs) });
    }
  }
  return partitions;
}

/** UTC midnight of the day a partition holds; undefined for a table that is no partition of ours. */
export function midnightOfPartition(name: string): number | undefined {
  const stamp = /^(?:notification|delivery|attempt)_(\d{4})(\d\d)(\d\d)$/.exec(name);
  return stamp ? Date.UTC(Number(stamp[1]), Number(stamp[2]) - 1, Number(stamp[3])) : undefined;
}

/**
 * Makes the table, then attaches it, which keeps nobody waiting; to create it as a partition needs the whole table for
 * an instant, behind everything that reads it.
 */
export function createPartition(partition: Partition): string {
  const { table, name } = partition;
  // delivery changes every row once or twice: vacuum it early, at the usual pace (without its pauses the vacuum after a
  // burst takes the core that delivers).
  const storage =
    table === 'delivery' ? ' WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)' : '';
  return `CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS)${storage}; ${attachPartition(partition)}`;
}

export const attachPartition = ({ table, name, from, to }: Partition): string =>
  `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM ('${from}') TO ('${to}')`;
