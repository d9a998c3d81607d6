import { Gauge } from 'prom-client';

export const inLineGauge = new Gauge({
  name: 'heraut_deliveries_in_line',
  help: 'Deliveries that wait in the memory of a worker until their endpoint has room, or the worker a place.',
});
