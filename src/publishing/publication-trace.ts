import type { FastifyReply, FastifyRequest } from 'fastify';
import { ProblemError } from '../infra/http/problem.js';
import { readTraceParent } from '../telemetry/trace-parent.js';
import type { OpenSpan, Tracer } from '../telemetry/tracing.js';

/** The trace that a publication is part of. */
export interface PublicationTrace {
  /** For its deliveries: that of `span`, or else what its publisher sent; undefined: neither. */
  traceParent?: string | undefined;
  /** Undefined: it is not sampled, or nothing is traced. */
  span?: OpenSpan | undefined;
}

const none: PublicationTrace = {};

/**
 * Carries out a request to publish as part of the trace that its `traceparent` names. Where nothing is traced,
 * deliveries pass that on as it came: as a proxy would.
 */
export function inTrace<T>(
  tracer: Tracer | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (trace: PublicationTrace) => Promise<T>,
): Promise<T> {
  const parent = readTraceParent(request.headers.traceparent);
  const span = tracer && beginSpan(tracer, request, parent);
  if (span) return traced(span, reply, () => work({ traceParent: span.traceParent, span }));
  return work(parent === undefined ? none : { traceParent: parent });
}

function beginSpan(tracer: Tracer, { method, routeOptions }: FastifyRequest, parent: string | undefined) {
  const route = routeOptions.url ?? '';
  const attributes = { 'http.request.method': method, 'http.route': route };
  return tracer.begin(`${method} ${route}`, { kind: 'server', parent, attributes });
}

async function traced<T>(span: OpenSpan, reply: FastifyReply, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    span.end({ 'http.response.status_code': reply.statusCode });
    return result;
  } catch (error) {
    const status = error instanceof ProblemError ? error.status : 500;
    span.end({ 'http.response.status_code': status }, status >= 500 ? String(status) : undefined);
    throw error;
  }
}
