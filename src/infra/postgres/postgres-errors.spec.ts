import { describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';
import { isNotConnected, isUnavailable } from './postgres-errors.js';

const failureOf = async (config: pg.PoolConfig): Promise<unknown> => {
  const pool = new pg.Pool({ connectionTimeoutMillis: 200, ...config });
  pool.on('error', () => undefined);
  try {
    return await pool.query('SELECT 1').then(
      () => undefined,
      (error: unknown) => error,
    );
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
    } finally {
      sockets.forEach((socket) => socket.destroy());
      server.close();
    }
    expect(isNotConnected(new Error('Connection terminated unexpectedly'))).toBe(false);
    expect(isNotConnected(Object.assign(new Error(), { code: 'ECONNRESET', syscall: 'read' }))).toBe(false);
    expect(isNotConnected(undefined)).toBe(false);
  });

  it.each([
    ['57P03', true],
    ['53300', true],
    ['28P01', true],
    ['57P01', false],
    ['40P01', false],
  ])('by the SQLSTATE %s: nothing was sent, %s', (code, expected) => {
    expect(isNotConnected(Object.assign(new Error(), { code }))).toBe(expected);
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
    '25006',
    '25P03',
    '55P03',
    '40P01',
  ])('is told by %s', (code) => {
    expect(isUnavailable(withCode(code))).toBe(true);
  });

  it.each(['23505', '42P01', 'XX000', 'EBADF'])('is not told by %s', (code) => {
    expect(isUnavailable(withCode(code))).toBe(false);
  });
});
