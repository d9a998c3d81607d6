import type { EntityManager } from 'typeorm';
import { createMonth, monthOf } from '../audit/months.js';
import { createPartition, midnightOfPartition, partitionsBetween } from '../ledger/partitions.js';

export type Database = Pick<EntityManager, 'query'>;

export interface Column {
  name: string;
  /** As SQL writes it. */
  type: string;
}

/** One that holds rows itself: a partition does, the table that it belongs to does not. */
export interface Table {
  name: string;
  /** Without those that Postgres computes from the others. */
  columns: Column[];
  /** Columns of the primary key, in its order. */
  key: string[];
  /** Tables that foreign keys lead to. */
  references: string[];
}

const selectTables = `
  SELECT c.relname AS name,
    (SELECT json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod)) ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns,
    ARRAY(SELECT a.attname::text
     FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, nr)
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
     WHERE i.indrelid = c.oid AND i.indisprimary ORDER BY k.nr) AS key,
    ARRAY(SELECT f.relname::text FROM pg_constraint k JOIN pg_class f ON f.oid = k.confrelid
     WHERE k.conrelid = c.oid AND k.contype = 'f') AS "references"
  FROM pg_class c
  WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('catalogue'))
  ORDER BY c.relname`;

/** Those beside the table `catalogue`, also of other programs; none where Heraut never was. */
export const readTables = async (database: Database): Promise<Table[]> =>
  (await database.query(selectTables)) as Table[];

/**
 * The table that has this one as a partition, by its name: one that is detached, because it was about to be dropped,
 * belongs to it all the same.
 */
export const familyOf = (name: string): string =>
  midnightOfPartition(name) === undefined && monthOf(name) === undefined ? name : name.slice(0, name.lastIndexOf('_'));

/** Statements that make the partition; undefined: the name is that of no partition of ours. */
export function makingOf(name: string): string | undefined {
  const [day, month] = [midnightOfPartition(name), monthOf(name)];
  if (day !== undefined) {
    const partition = partitionsBetween(day, day).find((each) => each.name === name);
    return partition && createPartition(partition);
  }
  return month && createMonth(month);
}

/** Each behind those that its foreign keys lead to. */
export function inOrderOfReferences(tables: readonly Table[]): Table[] {
  const left = new Map(tables.map((table) => [table.name, table]));
  const ordered: Table[] = [];
  while (left.size > 0) {
    const next = [...left.values()].filter(
      ({ name, references }) => !references.some((other) => other !== name && left.has(other)),
    );
    if (next.length === 0) throw new Error(`tables that refer to each other: ${[...left.keys()].join(', ')}`);
    for (const table of next) left.delete(table.name);
    ordered.push(...next);
  }
  return ordered;
}

/** A table, or a column of one, of the first list that the second does not have like that; undefined: there is none. */
export function differenceOf(some: readonly Table[], others: readonly Table[]): string | undefined {
  for (const { name, columns } of some) {
    const other = others.find((each) => each.name === name);
    if (!other) return name;
    const missing = columns.find(
      (column) => !other.columns.some((each) => each.name === column.name && each.type === column.type),
    );
    if (missing) return `${name}.${missing.name} (${missing.type})`;
  }
  return undefined;
}
