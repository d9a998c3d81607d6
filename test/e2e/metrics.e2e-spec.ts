import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Api } from '../support/api.js';
import { real, type PreparedStack } from '../support/stacks.js';

describe('/metrics', () => {
  let api: Api;

  beforeAll(async () => {
    api = await Api.start();
  });

  afterAll(() => api.close());

  const look = (accept?: string) =>
    api.get(`${api.origin}/metrics`, { token: null, headers: accept === undefined ? {} : { accept } });

  it.each([undefined, 'text/plain', 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5'])(
    'is text for Prometheus, without a token, also with another Accept (%s)',
    async (accept) => {
      const { status, headers, text } = await look(accept);
      expect(status).toBe(200);
      expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
      for (const line of text.split('\n').filter((one) => one !== ''))
        expect(line).toMatch(/^(# (HELP|TYPE) \w+ |\w+(\{.*\})? -?[\d.e+-]+$|\w+.* NaN$)/is);
    },
  );

  it('has the ages of what is done all the time, and the connections', async () => {
    const { text } = await look();
    const value = (series: string) =>
      Number(
        text
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.split(' ')[1],
      );
    expect(value('heraut_dispatcher_round_age_seconds{task="hand-out"}')).toBeGreaterThanOrEqual(0);
    expect(value('heraut_dispatcher_least_round_age_seconds{task="hand-out"}')).toBeGreaterThanOrEqual(0);
    expect(value('heraut_catalogue_age_seconds')).toBeGreaterThanOrEqual(0);
    expect(value('heraut_postgres_requests_in_line')).toBe(0);
    expect(value('heraut_postgres_connections{pool="hot",state="idle"}')).toBeGreaterThanOrEqual(0);
    expect(value('heraut_postgres_waiting{pool="hot"}')).toBeGreaterThanOrEqual(0);
    expect(value('heraut_dead_letters_total{state="failed"}')).toBeGreaterThanOrEqual(0);
  });

  it('has the process and every metric of ours', async () => {
    const { text } = await look();
    const ours = metricsInSource();
    expect(ours.length).toBeGreaterThan(50);
    const has = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
    expect(has).toEqual(
      expect.arrayContaining([
        'process_cpu_seconds_total',
        'process_resident_memory_bytes',
        'nodejs_eventloop_lag_seconds',
      ]),
    );
    expect(ours.filter((name) => !has.includes(name))).toEqual([]);
  });
});

/** Of every process: the supervisor of several adds its own, and traces have theirs where they are exported. */
function metricsInSource(): string[] {
  const source = fileURLToPath(new URL('../../src/', import.meta.url));
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.(?:counters|metrics)\.ts$/.test(name) && !/^(?:supervision|telemetry)\//.test(name),
  );
  const names = files.flatMap((name) => [...readFileSync(source + name, 'utf8').matchAll(/'(heraut_[a-z_]+)'/g)]);
  return [...new Set(names.map(([, name]) => name!))];
}

describe('a process without the role api', () => {
  let prepared: PreparedStack;
  let api: Api;

  beforeAll(async () => {
    prepared = await real.prepare();
    api = await Api.start({ ...prepared.settings, ROLES: 'worker,dispatcher' });
  });

  afterAll(async () => {
    await api.close();
    await prepared.release();
  });

  it.each([
    ['/', [200]],
    ['/health/live', [200]],
    // Its parts may be on their way still.
    ['/health/ready', [200, 503]],
    ['/metrics', [200]],
  ])('serves %s', async (path, expected) => {
    const { status } = await api.get(api.origin + path, { token: null });
    expect(expected).toContain(status);
  });

  it.each([
    ['GET', '/api/v1/kanaal'],
    ['OPTIONS', '/api/v1/kanaal'],
    ['DELETE', '/api/v1/notificaties'],
    ['POST', '/api/v1/notificaties'],
    ['GET', '/api/v1/schema/'],
    ['GET', '/api/v1/openapi.json'],
    ['GET', '/admin/v1/applications'],
    ['POST', '/admin/v1/applications'],
    ['GET', '/docs'],
    ['GET', '/ref/fouten/NotFound/'],
    ['GET', '/health/../admin/v1/applications'],
    ['GET', '/health/%2e%2e/admin/v1/applications'],
    ['GET', '/nothing'],
  ])('answers %s %s with 404', async (method, path) => {
    const { status, json } = await api.call(method, api.origin + path, { body: method === 'POST' ? {} : undefined });
    expect([status, json.code]).toEqual([404, 'not_found']);
  });
});
