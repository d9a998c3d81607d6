import type { FastifyInstance } from 'fastify';
import { collectDefaultMetrics, register } from 'prom-client';

// Once for the whole process, as the counters of each capability.
collectDefaultMetrics();

/** Serves the counters of this process in the format of Prometheus: without a token, because they contain no secret. */
export function serveMetrics(server: FastifyInstance): void {
  // Not in a controller: those answer in JSON and refuse a caller that does not accept it.
  server.get('/metrics', async (_request, reply) => {
    void reply.header('cache-control', 'no-store').type(register.contentType);
    return register.metrics();
  });
}
