import { Counter, Gauge } from 'prom-client';

export const openGauge = new Gauge({
  name: 'heraut_endpoints_open',
  help: 'Endpoints whose circuit breaker is open, as this process knows them; of several processes the largest.',
  aggregator: 'max',
});

export const longestOpenGauge = new Gauge({
  name: 'heraut_endpoints_longest_open_seconds',
  help: 'Seconds that the endpoint that has been open for longest is open, 0: none is; of several processes the largest.',
  aggregator: 'max',
});

export const releasedCounted = new Counter({
  name: 'heraut_deliveries_released_total',
  help: 'Held deliveries that were released: as probes of a parked endpoint, or as fast as endpoint and rate allow.',
  labelNames: ['as'],
});

export const inLineGauge = new Gauge({
  name: 'heraut_deliveries_in_line',
  help: 'Deliveries that wait in the memory of a worker until their endpoint has room, or the worker a place.',
});
