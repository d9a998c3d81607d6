import { Counter } from 'prom-client';

export const expiredCounted = new Counter({
  name: 'heraut_deliveries_expired_total',
  help: 'Deliveries that ended because their notification was older than its channel allows.',
});

export const unknownCounted = new Counter({
  name: 'heraut_deliveries_unknown_total',
  help: 'At-most-once deliveries that were sent, or may have been, and of which it is not known whether they arrived.',
});

export const fetchedCounted = new Counter({
  name: 'heraut_deliveries_fetched_total',
  help: 'Deliveries that ended because their subscriber said that it has fetched them.',
});
