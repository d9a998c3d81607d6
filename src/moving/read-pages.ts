import type { Database, Table } from './tables.js';

/** A row: each value as Postgres writes it, in the order of the columns. */
export type Row = readonly (string | null)[];

/** Of one page, which is in memory several times on its way. A row may be larger: a body has up to 1 MiB. */
const mostBytes = 4 * 2 ** 20;
const mostRows = 1000;

/** How many of the next rows fit into so many bytes: one at least. */
export function howManyFit(sizes: readonly number[], most: number): number {
  let [count, bytes] = [0, 0];
  for (const size of sizes) {
    bytes += size;
    if (count > 0 && bytes > most) break;
    count++;
  }
  return count;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * The rows of a table, a page at a time, in the order of its primary key. First the sizes of the next ones are read,
 * then as many of them as fit: the length of a text is known without reading it.
 */
export async function* readPages(database: Database, { name, columns, key }: Table): AsyncGenerator<Row[]> {
  if (key.length === 0) throw new Error(`${name} has no primary key to read it by`);
  const types = new Map(columns.map((column) => [column.name, column.type]));
  const order = key.map(quoted).join(', ');
  const size = columns.map((column) => `coalesce(octet_length(${quoted(column.name)}::text), 0)`).join(' + ');
  const texts = columns.map((column, nr) => `${quoted(column.name)}::text AS c${nr}`).join(', ');
  const after = `WHERE (${order}) > (${key.map((column, nr) => `$${nr + 1}::text::${types.get(column)}`).join(', ')})`;
  const places = key.map((column) => columns.findIndex((each) => each.name === column));
  const select = (what: string, limit: number, last: Row | undefined) =>
    database.query(
      `SELECT ${what} FROM ${quoted(name)} ${last ? after : ''} ORDER BY ${order} LIMIT ${limit}`,
      last && places.map((place) => last[place]),
    );
  for (let last: Row | undefined; ;) {
    const sizes = (await select(`${size} AS size`, mostRows, last)) as { size: number }[];
    if (sizes.length === 0) return;
    const fitting = howManyFit(
      sizes.map((row) => row.size),
      mostBytes,
    );
    const found = (await select(texts, fitting, last)) as Record<string, string | null>[];
    const page = found.map((row) => columns.map((_, nr) => row[`c${nr}`]!));
    yield page;
    last = page.at(-1);
  }
}
