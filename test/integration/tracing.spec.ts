import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { LoggerService } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import { postponedFor } from '../../src/delivery/not-called.js';
import { WebhookClient } from '../../src/delivery/webhook-client.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { startTracing } from '../../src/telemetry/start-tracing.js';
import { firstAttemptSpanId } from '../../src/telemetry/trace-parent.js';
import { Tracing, type Tracer } from '../../src/telemetry/tracing.js';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { OtlpCollector, type CollectedSpan } from '../support/otlp-collector.js';
import { answer, Receiver, type ReceivedRequest } from '../support/receiver.js';

const newTrace = (flags: '00' | '01') => {
  const [traceId, spanId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  return { traceId, spanId, header: `00-${traceId}-${spanId}-${flags}` };
};

const said: Record<string, unknown>[] = [];
const silent: LoggerService = {
  log: () => {},
  error: () => {},
  warn: (event: Record<string, unknown>) => void said.push(event),
};
/** A batch that is not taken in time is lost, and the collector of a test shares its process with all else. */
const unhurriedMs = 60_000;

describe('a trace', () => {
  let collector: OtlpCollector;
  let api: Api;
  let receiver: Receiver;
  let subscriptionId: string;
  let tracing: { tracer: Tracer | undefined };
  /** Of the program. */
  let own: Tracer | undefined;
  /** As that one, but for its patience. */
  let tracer: Tracer | undefined;

  beforeAll(async () => {
    [collector, receiver] = await Promise.all([OtlpCollector.start(), Receiver.start()]);
    api = await Api.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      DISPATCH_INTERVAL_MS: '100',
      TEST_CALLBACK_AUTH: 'false',
    });
    tracing = api.app.get(Tracing);
    own = tracing.tracer;
    tracer = await startTracing(
      readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/` }),
      silent,
      unhurriedMs,
    );
    await api.put(`${api.origin}/admin/v1/retry-policy`, { maxRetries: 3, backoffFactor: 0.1, baseFactor: 1 });
    expect((await api.post('/kanaal', { naam: 'cases' })).status).toBe(201);
    const body = { callbackUrl: `${receiver.url}?key=hidden`, auth: 'Bearer x', kanalen: [{ naam: 'cases' }] };
    const { status, json } = await api.post('/abonnement', body);
    expect(status).toBe(201);
    subscriptionId = lastPart(json.url);
  });

  afterAll(async () => {
    tracing.tracer = own;
    await tracer!.close();
    await api.close();
    await Promise.all([collector.stop(), receiver.stop()]);
  });

  beforeEach(() => {
    tracing.tracer = tracer;
  });

  const message = notificatie('cases');

  /** @returns its id */
  async function publish(headers: Record<string, string> = {}, body: object = message): Promise<string> {
    const { status, headers: answered } = await api.post('/notificaties', body, { headers });
    expect(status).toBe(201);
    return answered.get('notification-id')!;
  }

  const received = (id: string, count = 1): Promise<ReceivedRequest[]> =>
    eventually(() => {
      const requests = receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);
      return requests.length === count && requests;
    }, 'it to be received');

  const collected = (traceId: string, count: number): Promise<CollectedSpan[]> =>
    eventually(() => {
      const spans = collector.ofTrace(traceId);
      return spans.length >= count && spans;
    }, `${count} spans`);

  it('goes from the publisher through commit and queue to each attempt and to the receiver; a retry is linked to the first', async () => {
    const publisher = newTrace('01');
    receiver.next(answer(503));
    const id = await publish({ traceparent: publisher.header, baggage: 'a=b', tracestate: 'c=d' });
    const requests = await received(id, 2);
    const spans = await collected(publisher.traceId, 6);
    const named = (name: string) => spans.filter((span) => span.name === name);
    const [accepted] = named('POST /api/v1/notificaties');
    expect(accepted).toMatchObject({
      parentSpanId: publisher.spanId,
      kind: 2,
      service: 'heraut',
      attributes: { 'http.response.status_code': '201', 'http.route': '/api/v1/notificaties' },
    });
    expect(spans).toHaveLength(6);
    const within = spans.filter((span) => span !== accepted).map(({ parentSpanId }) => parentSpanId);
    expect(within).toEqual(within.map(() => accepted!.spanId));
    expect(named('commit')).toMatchObject([{ attributes: { 'heraut.result': 'accepted' } }]);
    expect(named('queue').map(({ attributes }) => attributes['heraut.lane'])).toEqual(['handed-over', 'slow']);
    const [first, second] = named('POST');
    expect(first).toMatchObject({
      spanId: firstAttemptSpanId(id, subscriptionId),
      kind: 3,
      links: [],
      status: { code: 2 },
      attributes: {
        'http.response.status_code': '503',
        'error.type': '503',
        'heraut.attempt': '1',
        'server.address': '127.0.0.1',
        'heraut.subscription.id': subscriptionId,
      },
    });
    expect(second).toMatchObject({
      links: [{ traceId: publisher.traceId, spanId: first!.spanId }],
      attributes: { 'http.response.status_code': '204', 'heraut.attempt': '2' },
    });
    expect(second!.status.code ?? 0).toBe(0);
    expect(requests.map(({ headers }) => headers.traceparent)).toEqual(
      [first, second].map((span) => `00-${publisher.traceId}-${span!.spanId}-01`),
    );
    for (const { headers } of requests) expect([headers.baggage, headers.tracestate]).toEqual([undefined, undefined]);
    expect(JSON.stringify(spans)).not.toContain('hidden');
    const lines = api.logged.filter(({ notificationId, trace_id }) => notificationId === id && trace_id !== undefined);
    expect(lines.map(({ event, trace_id, span_id }) => [event, trace_id, span_id])).toEqual([
      ['notification.accepted', publisher.traceId, accepted!.spanId],
      ['delivery.attempted', publisher.traceId, first!.spanId],
      ['delivery.attempted', publisher.traceId, second!.spanId],
    ]);
  });

  it('has one span of each id: a first call that used up no attempt leaves that of the first attempt to the one that does', async () => {
    const publisher = newTrace('01');
    const postponed = postponedFor({ reason: 'no way through the proxy', forMs: 0, againInMs: 0 });
    const abandoned = { ...postponed, kind: 'abandoned', wasSent: true } as const;
    const client = api.app.get(WebhookClient);
    const real = client.post.bind(client);
    const post = vi
      .spyOn(client, 'post')
      .mockResolvedValueOnce(abandoned)
      .mockResolvedValueOnce(postponed)
      .mockImplementationOnce(real)
      .mockResolvedValueOnce(abandoned);
    receiver.next(answer(503));
    const id = await publish({ traceparent: publisher.header });
    await received(id, 2);
    const told = post.mock.calls.map(([{ headers }]) => headers.traceparent);
    post.mockRestore();
    const spans = await collected(publisher.traceId, 12);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    const first = firstAttemptSpanId(id, subscriptionId);
    const link = [{ traceId: publisher.traceId, spanId: first }];
    const calls = spans.filter(({ name }) => name === 'POST');
    expect(
      calls.map(({ attributes, links }) => [attributes['error.type'], attributes['heraut.attempt'], links]),
    ).toMatchObject([
      ['abandoned', '1', link],
      ['postponed', '1', link],
      ['503', '1', []],
      ['abandoned', '2', link],
      [undefined, '2', link],
    ]);
    const ids = calls.map(({ spanId }) => spanId);
    const exported = [first, first, first, ids[3], ids[4]];
    expect(told).toEqual(exported.map((spanId) => `00-${publisher.traceId}-${spanId}-01`));
    const lines = api.logged.filter(
      ({ notificationId, event }) =>
        notificationId === id && /^delivery\.(?:abandoned|not-called|attempted)/.test(`${event}`),
    );
    expect(lines.map(({ event, span_id }) => [event, span_id])).toEqual([
      ['delivery.abandoned', ids[0]],
      ['delivery.not-called', ids[1]],
      ['delivery.attempted', first],
      ['delivery.abandoned', ids[3]],
      ['delivery.attempted', ids[4]],
    ]);
  });

  it('begins here where the publisher has none, or what it sent is none', async () => {
    for (const headers of [{}, { traceparent: '00-0-0-01' }] as Record<string, string>[]) {
      const [request] = await received(await publish(headers));
      const traceId = String(request!.headers.traceparent).slice(3, 35);
      expect((await collected(traceId, 4)).find(({ name }) => name.startsWith('POST /'))).not.toHaveProperty(
        'parentSpanId',
        expect.stringMatching(/./),
      );
    }
  });

  it('that the publisher does not sample is passed on, and not written', async () => {
    const publisher = newTrace('00');
    const [request] = await received(await publish({ traceparent: publisher.header }));
    expect(request!.headers.traceparent).toBe(publisher.header);
    const [later] = await received(await publish());
    await collected(String(later!.headers.traceparent).slice(3, 35), 4); // sent after it
    expect(collector.ofTrace(publisher.traceId)).toEqual([]);
  });

  it('of a refused publication ends with it', async () => {
    const publisher = newTrace('01');
    const { status } = await api.post(
      '/notificaties',
      { ...message, kanaal: 'none' },
      { headers: { traceparent: publisher.header } },
    );
    expect(status).toBe(400);
    expect(await collected(publisher.traceId, 1)).toMatchObject([
      { attributes: { 'http.response.status_code': '400' } },
    ]);
  });

  it('of a PUT that replaces is that of its latest content', async () => {
    const [first, second] = [newTrace('01'), newTrace('01')];
    const path = `/notificaties/${randomBytes(8).toString('hex')}`;
    const later = { 'deliver-after': new Date(Date.now() + 3_600_000).toISOString() };
    const put = (actie: string, headers: Record<string, string>) => api.put(path, { ...message, actie }, { headers });
    expect((await put('create', { ...later, traceparent: first.header })).status).toBe(201);
    const replaced = await put('update', { ...later, traceparent: second.header });
    expect(replaced.status).toBe(200);
    const [row] = (await api.app
      .get(Postgres)
      .dataSource.query('SELECT trace_parent FROM notification WHERE id = $1', [
        replaced.headers.get('notification-id'),
      ])) as { trace_parent: string }[];
    expect(row!.trace_parent.slice(3, 35)).toBe(second.traceId);
  });

  describe('where nothing is traced', () => {
    beforeEach(() => {
      tracing.tracer = undefined;
    });

    it('is passed on to the receiver as the publisher sent it, at each attempt', async () => {
      const publisher = newTrace('01');
      receiver.next(answer(503));
      const requests = await received(await publish({ traceparent: publisher.header, baggage: 'a=b' }), 2);
      expect(requests.map(({ headers }) => headers.traceparent)).toEqual([publisher.header, publisher.header]);
      expect(requests.map(({ headers }) => headers.baggage)).toEqual([undefined, undefined]);
    });

    it('is not invented, and nothing that is no trace context is passed on', async () => {
      for (const headers of [{}, { traceparent: 'anything' }] as Record<string, string>[]) {
        const [request] = await received(await publish(headers));
        expect(request!.headers).not.toHaveProperty('traceparent');
      }
    });
  });
});

describe('the exporter', () => {
  it('is not there without an endpoint', async () => {
    expect(await startTracing(readSettings({}), silent)).toBeUndefined();
  });

  it('is there in the program where an endpoint is configured', async () => {
    const collector = await OtlpCollector.start();
    const api = await Api.start({ ROLES: 'api', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await eventually(async () => {
      await api.post('/notificaties', {});
      return collector.spans.some(({ name }) => name === 'POST /api/v1/notificaties');
    }, 'a span');
    await api.close();
    await collector.stop();
  });

  it('gets all spans of a busy turn of the event loop, under the name that is configured', async () => {
    const collector = await OtlpCollector.start();
    const settings = readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: 'nrc of the city' });
    const tracer = (await startTracing(settings, silent, unhurriedMs))!;
    for (let nr = 0; nr < 5000; nr++) tracer.begin('one', {})!.end();
    await eventually(() => collector.spans.length === 5000, '5000 spans');
    expect(new Set(collector.spans.map(({ service }) => service))).toEqual(new Set(['nrc of the city']));
    await tracer.close();
    await collector.stop();
  });

  it('says of each span what OTEL_RESOURCE_ATTRIBUTES says, what makes it, and by which software', async () => {
    const collector = await OtlpCollector.start();
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=prod,service.name=other');
    const settings = readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: 'nrc' });
    const tracer = (await startTracing(settings, silent, unhurriedMs))!;
    vi.unstubAllEnvs();
    tracer.begin('one', {})!.end();
    await eventually(() => collector.spans.length === 1, 'the span');
    expect(collector.spans[0]!.resource).toMatchObject({
      'deployment.environment.name': 'prod',
      'service.name': 'nrc',
      'service.version': expect.any(String),
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.name': 'opentelemetry',
    });
    await tracer.close();
    await collector.stop();
  });

  it('samples as it is told', async () => {
    const settings = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
    const sampledOf = async (sampler: string, ratio: string, parent?: string) => {
      const named = { ...settings, OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio };
      const tracer = (await startTracing(readSettings(named), silent))!;
      let sampled = 0;
      for (let nr = 0; nr < 1000; nr++) if (tracer.begin('one', { parent })) sampled++;
      await tracer.close();
      return sampled;
    };
    expect(await sampledOf('always_off', '1')).toBe(0);
    const hundredth = await sampledOf('parentbased_traceidratio', '0.1');
    expect([hundredth, hundredth > 50 && hundredth < 200]).toEqual([hundredth, true]);
    expect(await sampledOf('parentbased_traceidratio', '0', newTrace('01').header)).toBe(1000);
    expect(await sampledOf('traceidratio', '0', newTrace('01').header)).toBe(0);
    expect(await sampledOf('parentbased_always_on', '1', newTrace('00').header)).toBe(0);
    expect(await sampledOf('always_on', '1', newTrace('00').header)).toBe(1000);
  });

  it('holds up neither work nor the end of the process when the collector is away, and says so once', async () => {
    const collector = await OtlpCollector.start();
    const { url } = collector;
    await collector.stop();
    said.length = 0;
    const tracer = (await startTracing(readSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), silent))!;
    for (let nr = 0; nr < 3000; nr++) tracer.begin('one', {})!.end();
    await tracer.close(); // does not reject
    await eventually(() => said.length > 0, 'it to be said');
    expect(said).toHaveLength(1);
    expect(said[0]).toMatchObject({ event: 'telemetry.not-exported' });
  });
});
