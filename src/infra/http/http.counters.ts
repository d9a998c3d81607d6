import { Counter } from 'prom-client';

/**
 * Both labels come from our own problems, never from the caller, so there are only as many series as documented codes.
 */
export const refusedCounted = new Counter({
  name: 'heraut_requests_refused_total',
  help: 'Requests answered with 4xx, or with 503 where nothing failed, by status and by the code of the problem.',
  labelNames: ['status', 'code'],
});
