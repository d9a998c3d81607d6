import { arrayOf } from './binary-array.js';

/** A statement that is prepared once per connection under its name. */
export interface Statement {
  /** In logs and counters. */
  name: string;
  /** Of several texts that have one name, which it is: each is prepared by itself. */
  edition?: string;
  /** With `$1`, `$2` … in place of its parameters. */
  text: string;
  /** The names of the parameters, in the order of their numbers. */
  parameters: readonly string[];
}

/** The values of a statement's parameters, by their names. */
export type Values = Readonly<Record<string, unknown>>;

/**
 * A statement written with named parameters: `$name` where Postgres wants `$1`. A name may occur several times, and its
 * value is bound by that name, so that no code counts positions.
 */
export function statement(name: string, text: string, edition?: string): Statement {
  const parameters: string[] = [];
  const numbered = text.replace(/\$([a-z_]\w*)/g, (_, parameter: string) => {
    if (!parameters.includes(parameter)) parameters.push(parameter);
    return `$${parameters.indexOf(parameter) + 1}`;
  });
  return { name, edition, text: numbered, parameters };
}

/** @throws {Error} for a parameter without a value: null is a value, undefined is none */
export function valuesOf({ name, parameters }: Statement, values: Values): unknown[] {
  return parameters.map((parameter) => {
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name}: nothing was given for $${parameter}`);
    return value;
  });
}

/** A column of rows that are handed to a statement: its type in Postgres, and how an item's value is found. */
export type Column<Item> = readonly [type: string, valueOf: (item: Item) => unknown];

/** Rows that a statement gets as arrays, one array a column. */
export interface Rows<Item> {
  /** For a FROM: `unnest(…) AS alias (column, …)`. */
  readonly from: string;
  /** One column as an array, to be read by subscript: `(${rows.array('id')})[nr]`. */
  array(column: string): string;
  /** The arrays, under the names that `from` and `array` use. */
  bind(items: readonly Item[]): Values;
}

/**
 * One list has the name, the type and the value of each column, both for the text of the statement and for its values.
 */
export function rowsOf<Item>(alias: string, columns: Readonly<Record<string, Column<Item>>>): Rows<Item> {
  const entries = Object.entries(columns);
  const parameterOf = (column: string) => `${alias}_${column}`;
  const array = (column: string) => {
    const found = columns[column];
    if (!found) throw new Error(`${alias} has no column ${column}`);
    return `$${parameterOf(column)}::${found[0]}[]`;
  };
  const names = Object.keys(columns);
  return {
    from: `unnest(${names.map(array).join(', ')}) AS ${alias} (${names.join(', ')})`,
    array,
    bind: (items) =>
      Object.fromEntries(
        entries.map(([column, [type, valueOf]]) => [parameterOf(column), arrayOf(type, items.map(valueOf))]),
      ),
  };
}
