import type { FastifyInstance } from 'fastify';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Gauge, register, type Metric } from 'prom-client';
import { slotMs, Standstills } from '../standstills.js';

// Once for the whole process, as the counters of each capability.
collectDefaultMetrics();

/**
 * How several processes' gauges become one where prom-client's own choice hides something: a mean hides the one process
 * that lags, and the start would be left out. Its choice stands for the lag's smallest (minimum), largest (maximum),
 * mean, deviation and median (mean), and for the version of Node (the first); all others are summed.
 */
const aggregators = {
  process_start_time_seconds: 'min',
  nodejs_eventloop_lag_seconds: 'max',
  nodejs_eventloop_lag_p90_seconds: 'max',
  nodejs_eventloop_lag_p99_seconds: 'max',
};
for (const [name, aggregator] of Object.entries(aggregators)) {
  const metric: (Metric & { aggregator?: string }) | undefined = register.getSingleMetric(name);
  if (!metric) throw new Error(`prom-client has no metric ${name}`);
  metric.aggregator = aggregator;
}

// Not by prom-client's percentiles: those are of samples, a standstill is one of them however long it is, and an idle
// process takes a hundred a second. And its maximum begins anew at each read: of several who read, each would get the
// standstills since another one did.
const lag = monitorEventLoopDelay({ resolution: 20 });
lag.enable();
const standstills = new Standstills(lag, () => performance.now());
// After a standstill many timers are late, and this one may be before the one that measures it: in `setImmediate` both
// are done.
setInterval(() => setImmediate(() => standstills.endSlot()), slotMs).unref();
const longestLately = new Gauge({
  name: 'heraut_longest_standstill_seconds',
  help: 'The longest that the process did not get to its work within the last minute; of several processes the largest.',
  aggregator: 'max',
  collect() {
    longestLately.set(standstills.longest());
  },
});

/** The metrics of this process, in the text format of Prometheus. */
export const ownMetrics = (): Promise<string> => register.metrics();

/** Serves metrics: without a token, because they contain no secret. */
export function serveMetrics(server: FastifyInstance, metrics: () => Promise<string>): void {
  // Not in a controller: those answer in JSON and refuse a caller that does not accept it.
  server.get('/metrics', async (_request, reply) => {
    void reply.header('cache-control', 'no-store').type(register.contentType);
    return metrics();
  });
}
