import { afterEach, describe, expect, it } from 'vitest';
import pg from 'pg';
import type { Health } from '../../src/health/check-health.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { version } from '../../src/infra/version.js';
import { Api } from '../support/api.js';
import { createDatabase, queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { Receiver } from '../support/receiver.js';
import { real } from '../support/stacks.js';
import { testServers } from '../support/test-servers.js';

/** Nothing listens there. */
const nowhere = '127.0.0.1:1';

describe('health', () => {
  const opened: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const close of opened.splice(0).reverse()) await close();
  });

  async function start(settings: Record<string, string> = {}): Promise<Api> {
    const api = await Api.start(settings);
    opened.push(() => api.close());
    return api;
  }

  /** Without a token: orchestrators have none. */
  const look = async (api: Api, what: 'live' | 'ready') => {
    const { status, headers, text } = await api.get(`${api.origin}/health/${what}`, { token: null });
    return { status, headers, text, json: JSON.parse(text) as Health };
  };

  const becomes = (api: Api, status: string) =>
    eventually(async () => {
      const answer = await look(api, 'ready');
      return answer.json.status === status ? answer : undefined;
    }, `health to be ${status}`);

  it('is ready, part by part, when everything is there', async () => {
    const stack = await real.prepare();
    opened.push(() => stack.release());
    const api = await start(stack.settings);
    const { status, headers, json } = await becomes(api, 'ready');
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(Object.keys(json.parts)).toEqual(
      expect.arrayContaining(['postgres', 'migrations', 'rabbitmq', 'redis', 'worker', 'dispatcher']),
    );
    expect(json.down).toEqual([]);
  });

  it('names only servers that are in use', async () => {
    const { json } = await becomes(await start(), 'ready');
    expect(Object.keys(json.parts)).not.toContain('rabbitmq');
    expect(Object.keys(json.parts)).not.toContain('redis');
  });

  it('is degraded without RabbitMQ and Redis: publishing is still accepted', async () => {
    const api = await start({ AMQP_URL: `amqp://${nowhere}`, REDIS_URL: `redis://${nowhere}` });
    const { status, json } = await becomes(api, 'degraded');
    expect(status).toBe(200);
    expect(json.down).toEqual(['rabbitmq', 'redis']);
    expect(json.parts.rabbitmq).toEqual({ status: 'down', error: 'failed with ECONNREFUSED' });
  });

  it('is unavailable without RabbitMQ where the process only delivers', async () => {
    const api = await start({ AMQP_URL: `amqp://${nowhere}`, ROLES: 'worker,dispatcher' });
    const { status, json } = await becomes(api, 'unavailable');
    expect(status).toBe(503);
    expect(json.down).toContain('rabbitmq');
  });

  it('names the roles that no process has', async () => {
    const stack = await real.prepare();
    opened.push(() => stack.release());
    const { json } = await becomes(await start({ ...stack.settings, ROLES: 'api' }), 'degraded');
    expect(json.down).toEqual(['worker', 'dispatcher']);
    expect(json.parts.dispatcher?.error).toContain('nothing is retried');
  });

  it('is ready while the connections to Postgres that serve requests are all in use, and more requests wait for one', async () => {
    const api = await start();
    await becomes(api, 'ready');
    const { dataSource } = api.app.get(Postgres);
    let free = () => {};
    const freed = new Promise<void>((resolve) => (free = resolve));
    let used = 0;
    const users = Array.from({ length: 6 }, () =>
      dataSource.transaction(async () => {
        used++;
        await freed;
      }),
    );
    await eventually(() => used === 2, 'both connections to be in use');
    const answers = [await look(api, 'ready'), await look(api, 'ready')];
    free();
    await Promise.allSettled(users); // one that waited for more than five seconds was refused
    expect(answers.map(({ status, json }) => [status, json.status])).toEqual([
      [200, 'ready'],
      [200, 'ready'],
    ]);
  });

  it('is unavailable, but alive, while Postgres is out of reach, and recovers', async () => {
    const database = await createDatabase();
    opened.push(() => database.drop());
    const api = await start({ DATABASE_URL: database.url });
    await becomes(api, 'ready');

    const name = new URL(database.url).pathname.slice(1);
    const maintenance = new pg.Client({ connectionString: testServers.databaseUrl() });
    await maintenance.connect();
    opened.push(() => maintenance.end());
    await maintenance.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
    await maintenance.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);

    const { status, json, text } = await becomes(api, 'unavailable');
    expect(status).toBe(503);
    expect(json.down).toContain('postgres');
    expect(text).not.toContain(name);
    expect((await look(api, 'live')).json).toEqual({ status: 'live' });

    await maintenance.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
    await becomes(api, 'ready');
  });

  it('is unavailable while Postgres answers and lets nothing be written, and every change is refused for a while', async () => {
    const database = await createDatabase();
    opened.push(() => database.drop());
    const api = await start({ DATABASE_URL: database.url });
    await becomes(api, 'ready');

    const name = new URL(database.url).pathname.slice(1);
    await queryOnce(testServers.databaseUrl(), `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`;
    await queryOnce(testServers.databaseUrl(), cut);
    const { status, json } = await eventually(async () => {
      const answer = await look(api, 'ready');
      return answer.json.parts.postgres?.error?.startsWith('it can only be read') && answer;
    }, 'health to say so');
    expect([status, json.status]).toEqual([503, 'unavailable']);
    const body = { naam: 'cases', documentatieLink: 'https://docs.example.org/', filters: [] };
    const refused = await api.post('/kanaal', body);
    expect([refused.status, refused.json.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'service_unavailable',
      '1',
    ]);

    // The connections of that time are still there, and would be read-only for as long as they are open.
    await queryOnce(testServers.databaseUrl(), `ALTER DATABASE ${name} RESET default_transaction_read_only`);
    await becomes(api, 'ready');
    await eventually(async () => (await api.post('/kanaal', body)).status === 201, 'a change to be made');
  });

  it('is unavailable as soon as the process begins to stop, while it still finishes what is in flight', async () => {
    const receiver = await Receiver.start();
    opened.push(() => receiver.stop());
    const api = await Api.start();
    const created = async (path: string, body: object) => expect((await api.post(path, body)).status).toBe(201);
    await created('/kanaal', { naam: 'cases', documentatieLink: 'https://docs.example.org/', filters: [] });
    await created('/abonnement', {
      callbackUrl: receiver.url,
      auth: 'Bearer receiver',
      kanalen: [{ naam: 'cases', filters: {} }],
    });
    let finish = () => {};
    receiver.next((_request, response) => (finish = () => response.writeHead(204).end()));
    await created('/notificaties', notificatie('cases'));
    await eventually(() => receiver.notifications.length === 1, 'the call');

    const closed = api.close();
    const { status, json } = await look(api, 'ready');
    finish();
    await closed;
    expect(status).toBe(503);
    expect(json.down).toEqual(['process']);
    expect(json.parts.process?.error).toBe('shutting down');
  });

  describe('the front page', () => {
    const ask = (api: Api, headers: Record<string, string> = {}) => api.get(`${api.origin}/`, { token: null, headers });

    it.each<[string, Record<string, string>]>([
      ['a browser', { accept: 'text/html' }],
      ['a probe that accepts anything', {}],
      ['a client of JSON', { accept: 'application/json' }],
    ])('says name, version and state, and where the documents are, to %s', async (_, accept) => {
      const api = await start();
      await becomes(api, 'ready');
      const { status, headers, text } = await ask(api, accept);
      expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([
        200,
        'text/html; charset=utf-8',
        'no-store',
      ]);
      expect(text).toContain(`Heraut ${version}`);
      expect(text).toContain('ready');
      const links = [...text.matchAll(/href="([^"]+)"/g)].map(([, link]) => link!);
      expect(links).toEqual(expect.arrayContaining(['/api/v1/schema', '/docs']));
      for (const link of links)
        expect([link, (await api.get(api.origin + link, { token: null })).status]).toEqual([link, 200]);
    });

    it('answers HEAD likewise, without the page', async () => {
      const api = await start();
      const { status, text } = await api.call('HEAD', `${api.origin}/`, { token: null });
      expect([status, text]).toEqual([200, '']);
    });

    it('is 200 also where nothing works, and names no document where the role api is missing', async () => {
      const api = await start({ AMQP_URL: `amqp://${nowhere}`, ROLES: 'worker,dispatcher' });
      await becomes(api, 'unavailable');
      const { status, text } = await ask(api);
      expect(status).toBe(200);
      expect(text).toMatch(/unavailable[^]*down: .*rabbitmq/);
      expect(text).not.toContain('/docs');
    });
  });
});
