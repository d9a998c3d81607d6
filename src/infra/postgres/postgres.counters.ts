import { Counter } from 'prom-client';

export const timedOutCounted = new Counter({
  name: 'heraut_postgres_statements_timed_out_total',
  help: 'Statements that exceeded a time limit, by name and by limit: statement, lock, or answer (the server gave none). Those outside the hot path are named other.',
  labelNames: ['statement', 'limit'],
});
