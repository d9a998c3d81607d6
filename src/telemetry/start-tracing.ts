import type { LoggerService } from '@nestjs/common';
import type { Settings } from '../config/settings.js';
import type { Tracer } from './tracing.js';

/**
 * @param exportWithinMs in place of the time that a collector has to take a batch
 * @returns undefined where no OTLP endpoint is configured: then not a line of OpenTelemetry is loaded for it
 */
export async function startTracing(
  settings: Settings,
  logger: LoggerService,
  exportWithinMs?: number,
): Promise<Tracer | undefined> {
  const endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint) return undefined;
  const { OtlpTracer } = await import('./otlp-tracer.opentelemetry.js');
  return new OtlpTracer({ ...settings, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, logger, exportWithinMs);
}
