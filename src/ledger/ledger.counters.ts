import { Counter, Histogram } from 'prom-client';

export const expiredCounted = new Counter({
  name: 'heraut_deliveries_expired_total',
  help: 'Deliveries that became too old: their notification was older than its channel allows, or they were held for too long.',
});

export const unknownCounted = new Counter({
  name: 'heraut_deliveries_unknown_total',
  help: 'At-most-once deliveries that were sent, or may have been, and of which it is not known whether they arrived.',
});

export const retriesLate = new Histogram({
  name: 'heraut_retry_lateness_seconds',
  help: 'Seconds from the time at which a retry was due to its being handed out.',
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200],
});

export const fetchedCounted = new Counter({
  name: 'heraut_deliveries_fetched_total',
  help: 'Deliveries that ended because their subscriber said that it has fetched them.',
});
