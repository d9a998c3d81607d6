import { Gauge } from 'prom-client';

export const backlogPace = new Gauge({
  name: 'heraut_backlog_pace_per_second',
  help: 'Deliveries a second of those that waited in the ledger that a process may start, while others are delivered as they are accepted; 0: full speed.',
});
