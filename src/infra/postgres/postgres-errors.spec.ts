import { describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import { certificate, key } from '../../../test/support/tls-identity.js';
import { CannotConnect } from '../cannot-connect.js';
import { ClosingClient } from './closing-client.js';
import { connectionAdvice, explainPostgres } from './connection-advice.js';
import { isDataError, isNotConnected, isTooLongForIndex, isUnavailable } from './postgres-errors.js';

const failureOf = async (config: pg.PoolConfig): Promise<unknown> => {
  const pool = new pg.Pool({ connectionTimeoutMillis: 200, ...config });
  pool.on('error', () => undefined);
  try {
    await pool.query('SELECT 1');
    return undefined;
  } catch (error) {
    return error;
  } finally {
    await pool.end();
  }
};

describe('an error of the driver says whether anything was sent', () => {
  it('not where the connection is refused, or its host unknown', async () => {
    expect(isNotConnected(await failureOf({ host: '127.0.0.1', port: 1 }))).toBe(true);
    expect(isNotConnected(await failureOf({ host: 'localhost', port: 1 }))).toBe(true);
    expect(isNotConnected(await failureOf({ host: 'nowhere.invalid', connectionTimeoutMillis: 20_000 }))).toBe(true);
  });

  it('not where Postgres does not answer in time, and perhaps where it answered and the connection ends', async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      expect(isNotConnected(await failureOf({ host: '127.0.0.1', port }))).toBe(true);
      const ofOurs = await failureOf({ host: '127.0.0.1', port, Client: ClosingClient });
      expect(explainPostgres(ofOurs)).toBeInstanceOf(CannotConnect);
    } finally {
      sockets.forEach((socket) => socket.destroy());
      server.close();
    }
    expect(isNotConnected(new Error('Connection terminated unexpectedly'))).toBe(false);
    expect(isNotConnected(Object.assign(new Error(), { code: 'ECONNRESET', syscall: 'read' }))).toBe(false);
    expect(isNotConnected(undefined)).toBe(false);
  });

  it.each([
    ['S', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE|DEPTH_ZERO_SELF_SIGNED_CERT', 'sslrootcert'],
    ['N', 'does not support SSL', 'sslrootcert'],
  ])(
    'not where TLS is asked for, and the server answers %s and cannot prove who it is',
    async (answer, said, advised) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.once('data', () => {
          socket.write(answer);
          if (answer === 'S')
            new TLSSocket(socket, { isServer: true, cert: certificate, key }).on('error', () => undefined);
        });
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const error = await failureOf({ host: '127.0.0.1', port, ssl: true, connectionTimeoutMillis: 20_000 });
      server.close();
      expect(`${(error as { code?: string }).code}: ${(error as Error).message}`).toMatch(new RegExp(said));
      expect([isNotConnected(error), isUnavailable(error)]).toEqual([true, true]);
      expect(connectionAdvice(error)).toContain(advised);
    },
  );

  it('not where a file of the connection is not there, and that is advised', async () => {
    const connectionString = 'postgres://127.0.0.1/heraut?sslmode=verify-full&sslrootcert=/nowhere/ca.pem';
    expect(connectionAdvice(await failureOf({ connectionString }))).toContain('sslrootcert');
  });

  it.each([
    ['57P03', true],
    ['53300', true],
    ['28P01', true],
    ['3D000', true],
    ['57P01', false],
    ['40P01', false],
  ])('by the SQLSTATE %s: nothing was sent, %s', (code, expected) => {
    expect(isNotConnected(Object.assign(new Error(), { code }))).toBe(expected);
  });
});

describe('an error of the code 54000', () => {
  it.each([
    ['index_form_tuple', true],
    ['index_form_tuple_context', true],
    ['_bt_check_third_page', true],
    ['GetNewTransactionId', false],
    ['GetNewMultiXactId', false],
  ])('of the function %s says that a value is too long for an index: %s', (routine, expected) => {
    const error = Object.assign(new Error(), { code: '54000', routine });
    const ofTypeorm = Object.assign(new Error(), { driverError: error });
    expect([error, ofTypeorm].map(isTooLongForIndex)).toEqual([expected, expected]);
    expect([error, ofTypeorm].map(isDataError)).toEqual([false, false]);
  });
});

describe('a database that cannot be used for a while', () => {
  const withCode = (code: string) => Object.assign(new Error(), { code });

  it.each([
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
    'EAI_AGAIN',
    '08006',
    '53100',
    '53300',
    '57P01',
    '28P01',
    '28000',
    '3D000',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    '25006',
    '25P03',
    '25P04',
    '55P03',
    '40P01',
  ])('is told by %s', (code) => {
    expect(isUnavailable(withCode(code))).toBe(true);
  });

  it.each(['23505', '42P01', 'XX000', 'EBADF'])('is not told by %s', (code) => {
    expect(isUnavailable(withCode(code))).toBe(false);
  });
});
