import { createReadStream, createWriteStream } from 'node:fs';
import { rm, statfs, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { DropConnection } from '../infra/postgres/detach-partitions.js';
import type { LedgerTable, Partition } from '../ledger/partitions.js';
import { nameFile, removeUnfinished, unfinishedFile, type OwnFile } from './archive-file.js';

/** Bytes left free on the disk: an export must not fill it, the ledger may be there too. */
const leftFreeBytes = 256 * 1024 * 1024;
/** Text between two looks at the disk. */
const lookEveryBytes = 16 * 1024 * 1024;
/**
 * Of texts that one statement reads; the last row may go beyond it. They are in memory several times on their way, and
 * more than half a gigabyte is no string.
 */
const pageBytes = 4 * 1024 * 1024;
const mostRows = 1000;

/** The primary key of each table, with its types. */
const keys: Record<LedgerTable, readonly (readonly [column: string, type: string])[]> = {
  notification: [['id', 'uuid']],
  delivery: [
    ['notification_id', 'uuid'],
    ['subscription_id', 'uuid'],
  ],
  attempt: [
    ['notification_id', 'uuid'],
    ['subscription_id', 'uuid'],
    ['number', 'int'],
    ['started_at', 'timestamptz'],
  ],
};

/** SQL: bytes of what may be long in a row. Of a `text` Postgres knows them without reading it. */
const sizes: Record<LedgerTable, string> = {
  notification: 'coalesce(octet_length(body), 0)',
  delivery: 'coalesce(octet_length(last_error), 0)',
  attempt: 'coalesce(octet_length(error), 0) + coalesce(octet_length(details::text), 0)',
};

export interface Exported {
  file: string;
  rows: number;
  /** Of the file. */
  bytes: number;
}

export interface ExportOptions {
  directory: string;
  stopping: AbortSignal;
  /** The file of the former export of this day, which is replaced if it is still there as it was. */
  own?: OwnFile | undefined;
  /** Is told name and size of the file before it has the name. */
  note?: (file: string, bytes: number) => Promise<unknown>;
  /** Bytes that have to stay free. */
  leaveFree?: number;
}

/**
 * Writes a day to `heraut-<day>.ndjson.gz`, or to the same with `-2` where that is another's: one line for each row,
 * `{"table":"delivery","row":{…}}`, first the notifications, then their deliveries, then the attempts. The columns are
 * those of the ledger, the bodies the exact texts that were sent. Under its name there is only a file that was written
 * to the end, is on the disk, and was read again and found whole.
 *
 * Read page by page, not in one transaction: one that is open for minutes keeps Postgres from cleaning up behind those
 * that deliver. All deliveries of the day have ended, and rows and contents are counted afterwards: of a notification
 * that was erased since its page was read, the file would have what is gone for whoever asked for it.
 * @throws the error that keeps it from being written; then no file is left
 */
export async function exportDay(
  connection: DropConnection,
  day: number,
  partitions: readonly Partition[],
  { directory, stopping, own, note = () => Promise.resolve(), leaveFree = leftFreeBytes }: ExportOptions,
): Promise<Exported> {
  await removeUnfinished(directory);
  const unfinished = unfinishedFile(directory, day);
  try {
    const { rows, contents } = await write(
      unfinished,
      readLines(connection, partitions, () => checkSpace(directory, leaveFree)),
      stopping,
    );
    const read = await countLines(unfinished, stopping);
    if (rows !== read) throw new Error(`${rows} rows were written, and the file has ${read}`);
    // Last, so that nothing but the renaming comes after it.
    const kept = await count(connection, partitions);
    if (rows !== kept.rows) throw new Error(`${rows} rows were written, and the day has ${kept.rows}`);
    if (contents !== kept.contents) throw new Error('something of the day was erased while it was written');
    const file = await nameFile(unfinished, day, own, note);
    return { file, rows, bytes: (await stat(file)).size };
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

interface Counted {
  rows: number;
  /** Bodies, and keys of requests: what an erasure takes from the row of a notification. It can only become less. */
  contents: number;
}

interface Line extends Record<string, unknown> {
  line: string;
  contents: number;
}

async function write(file: string, lines: AsyncIterable<Line[]>, stopping: AbortSignal): Promise<Counted> {
  const written: Counted = { rows: 0, contents: 0 };
  const text = async function* () {
    for await (const page of lines) {
      written.rows += page.length;
      for (const { contents } of page) written.contents += contents;
      yield `${page.map(({ line }) => line).join('\n')}\n`;
    }
  };
  // Bodies may be personal: for the user that Heraut runs as.
  const output = createWriteStream(file, { mode: 0o600, flush: true });
  await pipeline(Readable.from(text()), createGzip(), output, { signal: stopping });
  return written;
}

async function* readLines(
  connection: DropConnection,
  partitions: readonly Partition[],
  checkDisk: () => Promise<void>,
): AsyncGenerator<Line[]> {
  await checkDisk();
  let unchecked = 0;
  for (const partition of partitions) {
    for await (const page of readPages(connection, partition)) {
      const bytes = page.reduce((sum, { line }) => sum + line.length, 0);
      if (unchecked + bytes > lookEveryBytes) {
        await checkDisk();
        unchecked = 0;
      }
      unchecked += bytes;
      yield page;
    }
  }
}

/**
 * In the order of the primary key. First it is asked how many of the next rows fit, then those are read: what the rows
 * before them took says nothing about them.
 */
async function* readPages(connection: DropConnection, { table, name }: Partition): AsyncGenerator<Line[]> {
  const key = keys[table];
  const columns = key.map(([column]) => column).join(', ');
  const texts = key.map(([column]) => `t.${column}::text AS ${column}`).join(', ');
  const order = key.map(([column]) => `t.${column}`).join(', ');
  const after = `WHERE (${columns}) > (${key.map(([, type], nr) => `$${nr + 1}::${type}`).join(', ')})`;
  for (let last: Line | undefined; ;) {
    const values = last ? key.map(([column]) => last![column]) : [];
    const next = (what: string, limit: number) =>
      `SELECT ${what} FROM ${name} t ${last ? after : ''} ORDER BY ${order} LIMIT ${limit}`;
    const [{ fitting }] = (await connection.query(
      `SELECT count(*)::int AS fitting FROM (
         SELECT sum(bytes) OVER (ORDER BY ${columns} ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
         FROM (${next(`${columns}, ${sizes[table]} AS bytes`, mostRows)}) next
       ) sized WHERE bytes_before < ${pageBytes}`,
      values,
    )) as [{ fitting: number }];
    if (fitting === 0) return;
    const line = `json_build_object('table', '${table}', 'row', row_to_json(t))::text AS line`;
    const rows = await connection.query(next(`${line}, ${contentsOf(table)} AS contents, ${texts}`, fitting), values);
    yield rows as Line[];
    last = (rows as Line[]).at(-1);
  }
}

const contentsOf = (table: LedgerTable): string => (table === 'notification' ? 'num_nonnulls(body, request_key)' : '0');

async function count(connection: DropConnection, partitions: readonly Partition[]): Promise<Counted> {
  const counts = partitions.map(
    ({ table, name }) => `SELECT count(*) AS rows, sum(${contentsOf(table)}) AS contents FROM ${name}`,
  );
  const [counted] = (await connection.query(
    `SELECT sum(rows)::float8 AS rows, coalesce(sum(contents), 0)::float8 AS contents FROM (${counts.join(' UNION ALL ')}) AS each`,
  )) as [Counted];
  return counted;
}

/** Reads the file to its end, which checks what it was compressed from. */
async function countLines(file: string, stopping: AbortSignal): Promise<number> {
  let lines = 0;
  await pipeline(
    createReadStream(file),
    createGunzip(),
    async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) for (const byte of chunk) if (byte === 10) lines++;
    },
    { signal: stopping },
  );
  return lines;
}

async function checkSpace(directory: string, leaveFree: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const free = bavail * bsize;
  if (free < leaveFree) throw new Error(`the disk has ${free} bytes free, and ${leaveFree} must stay free`);
}
