import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { freePort } from '../../scripts/private-servers/private-server.mjs';
import { readSettings } from '../../src/config/settings.js';
import { orSayWhy } from '../../src/infra/http/cannot-listen.js';
import { createHttpAdapter } from '../../src/infra/http/http-server.js';
import { nrcDialect } from '../../src/nrc/nrc-dialect.js';

describe('the server of ADMIN_PORT', () => {
  let port: number;
  let fastify: FastifyInstance;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    port = await freePort();
    const adapter = createHttpAdapter({
      settings: readSettings({ ADMIN_PORT: String(port), KEEP_ALIVE_SEC: '4000' }),
      dialect: nrcDialect,
      metrics: () => Promise.resolve('counted 1\n'),
    });
    fastify = adapter.getInstance<FastifyInstance>();
  });

  afterEach(() => fastify.close());

  it('answers what it was asked before it closed, and is gone when all is closed', async () => {
    let answer: (text: string) => void = () => {};
    const isAsked = new Promise<void>((resolve) => {
      fastify.get('/admin/slow', () => {
        resolve();
        return new Promise<string>((later) => (answer = later));
      });
    });
    await fastify.listen({ port: 0, host: '127.0.0.1' });
    const asked = fetch(`http://127.0.0.1:${port}/admin/slow`);
    await isAsked;
    const closed = fastify.close();
    answer('done');
    const response = await asked;
    expect([response.status, await response.text()]).toEqual([200, 'done']);
    await closed;
    await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow('fetch failed');
  });

  it('keeps a connection without a request for KEEP_ALIVE_SEC, as the one of PORT does', async () => {
    const main = await fastify.listen({ port: 0, host: '127.0.0.1' });
    for (const address of [`${main}/health/live`, `http://127.0.0.1:${port}/metrics`]) {
      const { headers } = await fetch(address);
      expect([headers.get('connection'), headers.get('keep-alive')]).toEqual(['keep-alive', 'timeout=4000']);
    }
  });

  it('lets the process fail to start when its port is in use, and names the setting', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
    await expect(fastify.listen({ port: 0, host: '127.0.0.1' })).rejects.toThrow(
      /EADDRINUSE.*or set ADMIN_PORT to a port that is free/,
    );
    other.close();
  });

  it('names the other setting where the address is of another machine', async () => {
    const elsewhere = createServer().listen(0, '203.0.113.1'); // RFC 5737: of documentation
    const listening = orSayWhy(once(elsewhere, 'listening'), { host: 'ADMIN_HOST', port: 'ADMIN_PORT' });
    await expect(listening).rejects.toThrow(/EADDRNOTAVAIL.*set ADMIN_HOST to one that is/);
  });
});
