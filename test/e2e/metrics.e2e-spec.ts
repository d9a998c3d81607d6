import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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

  it('has the process and every counter of ours', async () => {
    const { text } = await look();
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_eventloop_lag_seconds',
      'heraut_publications_total',
      'heraut_delivery_attempts_total',
      'heraut_calls_not_made_total',
      'heraut_deliveries_filtered_total',
      'heraut_deliveries_expired_total',
      'heraut_deliveries_unknown_total',
      'heraut_endpoints_open',
      'heraut_deliveries_released_total',
      'heraut_idempotency_total',
      'heraut_requests_refused_total',
      'heraut_alerts_open',
      'heraut_alert_notes_total',
      'heraut_publications_not_stored_total',
      'heraut_postgres_statements_timed_out_total',
      'heraut_publication_duration_seconds',
      'heraut_delivery_seconds',
      'heraut_attempt_duration_seconds',
      'heraut_retry_lateness_seconds',
      'heraut_dead_letters_total',
      'heraut_backlog_deliveries',
      'heraut_catalogue_age_seconds',
      'heraut_postgres_connections',
    ]) {
      expect(text).toContain(`# TYPE ${name} `);
    }
  });
});

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

  it.each(['/', '/health/live', '/health/ready', '/metrics'])('serves %s', async (path) => {
    const { status } = await api.get(api.origin + path, { token: null });
    expect([200, 503]).toContain(status);
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
