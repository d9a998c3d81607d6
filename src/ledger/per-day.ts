import { isMissingTable } from '../infra/postgres/postgres-errors.js';
import { statement, type Statement } from '../infra/postgres/statement.js';
import { dayOfId, partitionOf, type LedgerTable } from './partitions.js';

/** A statement about the deliveries of one day. `day`: days since 1970, by UTC. */
export type StatementOfDay = (day: number) => Statement;

/** How a table is called on a day. */
type TableOfDay = (table: LedgerTable) => string;

/** More than there are days with deliveries that anybody works on. */
const mostKept = 400;

/**
 * A statement that is given deliveries names the partition that they are in. On the whole table Postgres would lock,
 * open and prune every partition each time it runs: settling one delivery took 0.3 ms of its CPU with partitions for
 * two days, 1.4 ms with the 39 of a month, and 48 ms with the 374 of a year (docs/decisions/0019).
 *
 * Not by bounds on the id: they tempt the planner to read the whole range of a partition of which it knows little.
 * @param write writes the statement, given how a table is called on that day
 */
export function perDay(name: string, write: (of: TableOfDay) => string): StatementOfDay {
  const ofDays = perTwoDays(name, write);
  return (day) => ofDays(day, day);
}

/** As `perDay`, for deliveries of a second day as well, which nearly always is the same one. */
export function perTwoDays(
  name: string,
  write: (of: TableOfDay, ofOther: TableOfDay) => string,
): (day: number, other: number) => Statement {
  const made = new Map<string, Statement>();
  return (day, other) => {
    const edition = day === other ? String(day) : `${day}-${other}`;
    let found = made.get(edition);
    if (!found) {
      if (made.size >= mostKept) made.clear();
      found = statement(name, write(tableOf(day), tableOf(other)), edition);
      made.set(edition, found);
    }
    return found;
  };
}

const tableOf =
  (day: number): TableOfDay =>
  (table) =>
    partitionOf(table, day);

/**
 * Runs a statement for the items of each day, all days at the same time: nearly always there is one. Nothing is found
 * on a day that was dropped.
 *
 * A day that fails keeps no other from being written. `run` itself notes what its caller must learn of a day that was:
 * that is not returned where another one failed.
 * @throws the error of the first day that failed, after all have ended
 */
export async function onEachDay<Item, Row>(
  items: readonly Item[],
  idOf: (item: Item) => string,
  run: (day: number, items: Item[]) => Promise<Row[]>,
): Promise<Row[]> {
  const days = [...byDay(items, idOf)].map(([day, ofDay]) => onDay(run(day, ofDay), []));
  await Promise.allSettled(days);
  return (await Promise.all(days)).flat();
}

export function byDay<Item>(items: readonly Item[], idOf: (item: Item) => string): Map<number, Item[]> {
  const found = new Map<number, Item[]>();
  for (const item of items) {
    const day = dayOfId(idOf(item));
    const ofDay = found.get(day);
    if (ofDay) ofDay.push(item);
    else found.set(day, [item]);
  }
  return found;
}

/** The result of a statement of one day, or `none` where that day was dropped. */
export async function onDay<T>(result: Promise<T>, none: T): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (isMissingTable(error)) return none;
    throw error;
  }
}
