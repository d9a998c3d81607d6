import type { Tracing } from '../../src/telemetry/tracing.js';

/** Nothing is traced, as where no OTLP endpoint is configured. */
export const untraced: Tracing = { tracer: undefined };
