import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, register } from 'prom-client';

// Once for the whole process, as the counters of each capability.
collectDefaultMetrics();

/** Serves what this process has counted, as Prometheus reads it: to everybody, for there is nothing secret in it. */
export function serveMetrics(server: FastifyInstance): void {
  // Not a controller's: those answer in JSON and refuse who does not accept that.
  server.get('/metrics', async (_request, reply) => {
    void reply.header('cache-control', 'no-store').type(register.contentType);
    return register.metrics();
  });
}
