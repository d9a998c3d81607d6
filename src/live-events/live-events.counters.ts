import { Counter, Gauge } from 'prom-client';

export const eventsDropped = new Counter({
  name: 'heraut_live_events_dropped_total',
  help: 'Live events that were not written for listeners, because there were too many at once or Postgres did not take them.',
});

export const listening = new Gauge({
  name: 'heraut_live_listeners',
  help: 'Connections that listen to live events at this moment.',
});
