const tables = ['notification', 'delivery', 'attempt'] as const;
export type LedgerTable = (typeof tables)[number];

const dayMs = 86_400_000;

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

/** Milliseconds since 1970 at which a UUIDv7 was made. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The partitions of the UTC days from `fromMs` to `toMs`, both included. */
export function partitionsBetween(fromMs: number, toMs: number): Partition[] {
  const partitions: Partition[] = [];
  for (let day = Math.floor(fromMs / dayMs) * dayMs; day <= toMs; day += dayMs) {
    const stamp = new Date(day).toISOString().slice(0, 10).replaceAll('-', '');
    for (const table of tables) {
      partitions.push({ table, name: `${table}_${stamp}`, from: lowestIdAt(day), to: lowestIdAt(day + dayMs) });
    }
  }
  return partitions;
}

/** UTC midnight of the day a partition holds; undefined for a table that is no partition of ours. */
export function dayOfPartition(name: string): number | undefined {
  const stamp = /^(?:notification|delivery|attempt)_(\d{4})(\d\d)(\d\d)$/.exec(name);
  return stamp ? Date.UTC(Number(stamp[1]), Number(stamp[2]) - 1, Number(stamp[3])) : undefined;
}

export function createPartition({ table, name, from, to }: Partition): string {
  // delivery changes every row once or twice: vacuum it early, at the usual pace (without its pauses the vacuum after a burst
  // takes the core that delivers), and leave room on its pages.
  const storage =
    table === 'delivery'
      ? ' WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000)'
      : '';
  return `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF ${table} FOR VALUES FROM ('${from}') TO ('${to}')${storage}`;
}
