import pg from 'pg';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';

interface Explained {
  'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }];
}

export async function connectTo({ url }: { url: string }): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** Runs a statement. @returns the pages that it looked at */
export async function pagesRead(client: pg.Client, text: string, values: unknown[] = []): Promise<number> {
  const { rows } = await client.query<Explained>(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values);
  const { Plan: plan } = rows[0]!['QUERY PLAN'][0];
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

/** The same, and undoes it. */
export async function pagesReadUndone(client: pg.Client, text: string, values?: unknown[]): Promise<number> {
  await client.query('BEGIN');
  try {
    return await pagesRead(client, text, values);
  } finally {
    await client.query('ROLLBACK');
  }
}

/** A statement with its values in its text. */
export function inlined(statement: Statement, values: Values): string {
  const literals = literalsOf(statement, values);
  return statement.text.replace(/\$(\d+)/g, (_, nr: string) => `(${literals[Number(nr) - 1]})`);
}

/** The values of the parameters, in their order, as SQL. */
export const literalsOf = (statement: Statement, values: Values): string[] => valuesOf(statement, values).map(literal);

const literal = (value: unknown): string => {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return String(value);
  return pg.escapeLiteral(Array.isArray(value) ? `{${value.join()}}` : (value as string));
};
