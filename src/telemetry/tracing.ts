/** Of a span, for a line of the log. */
export interface TraceFields {
  trace_id: string;
  span_id: string;
}

export interface SpanStart {
  /** Server: of a request to us. Client: of a call of ours. Consumer: of what was taken from a queue. */
  kind?: 'server' | 'client' | 'consumer' | 'internal';
  /** `traceparent` of the span that it is part of; not given: it begins a trace. */
  parent?: string | undefined;
  /** Its id; not given: a random one. */
  spanId?: string;
  /** Ids of other spans of the same trace that it refers to. */
  linkedSpanIds?: readonly string[];
  /** Milliseconds since 1970, by the clock of this machine; not given: now. */
  startedAt?: number;
  attributes?: Attributes;
}

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span that is under way, and is sampled. */
export interface OpenSpan {
  /** For what follows from it. */
  readonly traceParent: string;
  readonly logFields: TraceFields;
  /** Begins a span within it. */
  begin(name: string): OpenSpan | undefined;
  /** @param error the failure, in a few words of a closed list; not given: none */
  end(attributes?: Attributes, error?: string): void;
}

export interface Tracer {
  /** @returns undefined where it is not sampled */
  begin(name: string, start: SpanStart): OpenSpan | undefined;
  /** Sends what is left, within two seconds. Never rejects. */
  close(): Promise<void>;
}

/** As a provider. */
export abstract class Tracing {
  /** Undefined: no OTLP endpoint is configured. To look whether it is there is all that tracing costs then. */
  abstract readonly tracer: Tracer | undefined;
}
