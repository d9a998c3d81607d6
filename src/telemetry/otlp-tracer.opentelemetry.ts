import type { LoggerService } from '@nestjs/common';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags, type Context, type Span } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
  type Resource,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  NodeTracerProvider,
  ParentBasedSampler,
  RandomIdGenerator,
  TraceIdRatioBasedSampler,
  type ReadableSpan,
  type Sampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-node';
import { setTimeout as pause } from 'node:timers/promises';
import type { Settings } from '../config/settings.js';
import { version } from '../infra/version.js';
import { spansEnded, spansExported } from './telemetry.counters.js';
import { partsOf, writeTraceParent } from './trace-parent.js';
import type { Attributes, OpenSpan, SpanStart, TraceFields, Tracer } from './tracing.js';

/** A collector that is down must hold up neither the process nor its end (docs/decisions/0044). */
const exportWithinMs = 1000;
const batching = {
  // One turn of the event loop may end the spans of several batches. A span that finds no room is dropped.
  maxQueueSize: 16_384,
  maxExportBatchSize: 1024,
  scheduledDelayMillis: 1000,
};
const closeWithinMs = 2000;
/** While the collector is down, it is said so often. */
const sayAgainMs = 60_000;

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

type TracingSettings = Pick<Settings, 'OTEL_TRACES_SAMPLER' | 'OTEL_TRACES_SAMPLER_ARG' | 'OTEL_SERVICE_NAME'> & {
  OTEL_EXPORTER_OTLP_ENDPOINT: string;
};

/**
 * Spans by OpenTelemetry, sent over OTLP/HTTP as JSON. Every span is begun by hand and knows its parent: notifications
 * of many requests are written together, so that a context of the thread would be that of any of them. So nothing is
 * registered globally.
 */
export class OtlpTracer implements Tracer {
  private readonly ids = new ChosenIds();
  private readonly provider: NodeTracerProvider;
  private readonly tracer: ReturnType<NodeTracerProvider['getTracer']>;

  constructor(settings: TracingSettings, logger: LoggerService, timeoutMillis = exportWithinMs) {
    const url = `${settings.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/+$/, '')}/v1/traces`;
    const exporter = new ToldExporter(new OTLPTraceExporter({ url, timeoutMillis }), logger);
    this.provider = new NodeTracerProvider({
      resource: resourceOf(settings),
      sampler: samplerOf(settings),
      idGenerator: this.ids,
      spanProcessors: [new BatchSpanProcessor(exporter, { ...batching, exportTimeoutMillis: 1.5 * timeoutMillis })],
    });
    this.tracer = this.provider.getTracer('heraut', version);
  }

  begin(name: string, { kind = 'internal', parent, spanId, linkedSpanIds, startedAt, attributes }: SpanStart) {
    const parts = parent === undefined ? undefined : partsOf(parent);
    const traceFlags = parts?.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    const context: Context = parts
      ? trace.setSpanContext(ROOT_CONTEXT, { ...parts, traceFlags, isRemote: true })
      : ROOT_CONTEXT;
    const links = parts && linkedSpanIds?.map((linked) => ({ context: { ...parts, spanId: linked, traceFlags } }));
    this.ids.next = spanId;
    const span = this.tracer.startSpan(
      name,
      { kind: kinds[kind], startTime: startedAt, attributes, links: links ?? [] },
      context,
    );
    this.ids.next = undefined;
    return span.isRecording() ? new SampledSpan(span, this) : undefined;
  }

  async close(): Promise<void> {
    // With the collector down it rejects, or takes long.
    const closed = this.provider.shutdown().catch(() => {});
    await Promise.race([closed, pause(closeWithinMs, undefined, { ref: false })]);
  }
}

/** Of two values of an attribute the later one counts. */
function resourceOf({ OTEL_SERVICE_NAME: name }: TracingSettings): Resource {
  const own = { 'service.name': name, 'service.version': version, 'process.pid': process.pid };
  // `OTEL_RESOURCE_ATTRIBUTES`: a provider by itself does not read it.
  const given = detectResources({ detectors: [envDetector] });
  return defaultResource().merge(given).merge(resourceFromAttributes(own));
}

class SampledSpan implements OpenSpan {
  readonly traceParent: string;
  readonly logFields: TraceFields;

  constructor(
    private readonly span: Span,
    private readonly tracer: OtlpTracer,
  ) {
    const { traceId, spanId } = span.spanContext();
    this.traceParent = writeTraceParent({ traceId, spanId, isSampled: true });
    this.logFields = { trace_id: traceId, span_id: spanId };
  }

  begin(name: string): OpenSpan | undefined {
    return this.tracer.begin(name, { parent: this.traceParent });
  }

  end(attributes?: Attributes, error?: string): void {
    if (attributes) this.span.setAttributes(attributes);
    if (error !== undefined) {
      this.span.setAttribute('error.type', error);
      this.span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.span.end();
    spansEnded.inc();
  }
}

/** Random ids, unless the next span is to have a certain one. */
class ChosenIds extends RandomIdGenerator {
  next: string | undefined;

  constructor() {
    super();
    const random = this.generateSpanId;
    this.generateSpanId = () => this.next ?? random();
  }
}

/** Counts what arrives, and says once when the collector does not take it. */
class ToldExporter implements SpanExporter {
  private saidAt = -Infinity;

  constructor(
    private readonly exporter: SpanExporter,
    private readonly logger: LoggerService,
  ) {}

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.exporter.export(spans, (result) => {
      if (result.code === 0) spansExported.inc(spans.length);
      else this.sayFailed(spans.length, result.error);
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.exporter.shutdown();
  }

  private sayFailed(spans: number, error: Error | undefined): void {
    const now = performance.now();
    if (now - this.saidAt < sayAgainMs) return;
    this.saidAt = now;
    this.logger.warn({ event: 'telemetry.not-exported', spans, error });
  }
}

function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: TracingSettings): Sampler {
  const own = name.endsWith('off')
    ? new AlwaysOffSampler()
    : name.endsWith('on')
      ? new AlwaysOnSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root: own }) : own;
}
