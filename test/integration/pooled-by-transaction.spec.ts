import { afterAll, beforeAll, expect, it } from 'vitest';
import pg from 'pg';
import { poolingUnfit } from '../../src/infra/postgres/pooled-by-transaction.js';
import type { Ask } from '../../src/infra/postgres/unfit.js';
import { testServers } from '../support/test-servers.js';

/** As a pooler in transaction mode does: a client has a connection from BEGIN to ROLLBACK, or for one statement. */
class Pooler {
  /** Of the connections that it has to Postgres, those that no transaction has. */
  readonly free: pg.Client[];

  constructor(connections: readonly pg.Client[]) {
    this.free = [...connections];
  }

  connect(): Ask {
    let own: pg.Client | undefined;
    return async <Row>(text: string) => {
      const connection = own ?? this.free.pop()!;
      own = text === 'BEGIN' || (own && text !== 'ROLLBACK') ? connection : undefined;
      try {
        return (await connection.query(text)).rows as Row[];
      } finally {
        if (!own) this.free.push(connection);
      }
    };
  }
}

let connections: pg.Client[];

beforeAll(async () => {
  connections = Array.from({ length: 3 }, () => new pg.Client(testServers.databaseUrl()));
  await Promise.all(connections.map((client) => client.connect()));
});
afterAll(async () => {
  await Promise.all(connections.map((client) => client.end()));
});

it.each([
  ['to another client', 3],
  ['to another client, where it has no other', 1],
])('a pooler that gives a connection away between two transactions is found: %s', async (_, count) => {
  const pooler = new Pooler(connections.slice(0, count));
  const found = await poolingUnfit(pooler.connect(), pooler.connect());
  expect(found?.advice).toContain('set pool_mode = session');
  expect(pooler.free).toHaveLength(count);
});

it('a pooler is found as well where a third client takes the connection', async () => {
  const pooler = new Pooler(connections);
  const [idle, busy] = [pooler.connect(), pooler.connect()];
  const taking: Ask = async <Row>(text: string) => {
    if (text === 'BEGIN') await pooler.connect()('BEGIN');
    return busy<Row>(text);
  };
  try {
    expect(await poolingUnfit(idle, taking)).toBeDefined();
  } finally {
    await connections[2]!.query('ROLLBACK');
  }
});

it('connections that stay the same are taken for no pooler', async () => {
  const [idle, busy] = connections.map(
    (client): Ask =>
      async <Row>(text: string) =>
        (await client.query(text)).rows as Row[],
  );
  expect(await poolingUnfit(idle!, busy!)).toBeUndefined();
});
