import { expect, it } from 'vitest';
import pg from 'pg';
import { testServers } from '../../../test/support/test-servers.js';
import { CannotConnect } from '../cannot-connect.js';
import { explainPostgres } from './connection-advice.js';

it('an error of the start has an advice where Postgres says what is wrong, and none where another server may be meant', () => {
  const full = explainPostgres(Object.assign(new Error('could not extend file'), { code: '53100' }));
  expect(full).toBeInstanceOf(CannotConnect);
  expect((full as Error).message).toBe(
    'Postgres cannot be used: 53100: could not extend file. Its disk is full: make room there, and start again.',
  );
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED', syscall: 'connect' });
  for (const other of [refused, new Error('a bug'), undefined]) expect(explainPostgres(other)).toBe(other);
});

it.each(['42P05', '26000'])('a pooler that changes connections within a session is named as such (%s)', (code) => {
  const error = Object.assign(new Error('prepared statement "catalogue-version" is not as expected'), { code });
  expect((explainPostgres(error) as Error).message).toContain('set pool_mode = session');
});

it.each([
  ['28000', 'docs/running.md#tls'], // its pg_hba.conf has hostssl alone
  ['53300', 'CONNECTION LIMIT'],
])('an advice names each cause that there may be (%s)', (code, cause) => {
  const error = Object.assign(new Error('refused'), { code });
  expect((explainPostgres(error) as Error).message).toContain(cause);
});

it('a pooler that refuses the parameters of a connection is named as such, and no other with the same code', () => {
  const refused = (message: string) => explainPostgres(Object.assign(new Error(message), { code: '08P01' }));
  const { message } = refused('unsupported startup parameter: statement_timeout') as Error;
  expect(message).toContain('point DATABASE_URL at Postgres itself');
  expect(message).toContain('statement_timeout,lock_timeout,idle_in_transaction_session_timeout');
  expect((refused('no such user: heraut') as Error).message).not.toContain('startup_parameters');
});

it('a start that found no connection free says what gives too few', async () => {
  const pool = new pg.Pool({ connectionString: testServers.databaseUrl(), max: 1, connectionTimeoutMillis: 5000 });
  const only = await pool.connect();
  pool.options.connectionTimeoutMillis = 1;
  const error = explainPostgres(await pool.connect().catch((failure: unknown) => failure));
  only.release();
  await pool.end();
  expect(error).toBeInstanceOf(CannotConnect);
  expect((error as Error).message).toMatch(
    /timeout exceeded when trying to connect\. No connection .*default_pool_size/,
  );
});
