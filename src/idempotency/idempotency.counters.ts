import { Counter } from 'prom-client';

export const idempotencyCounted = new Counter({
  name: 'heraut_idempotency_total',
  help: 'Keys asked for: hit (done before), miss (run now), takeover (run now, its holder had died), in-flight, mismatch.',
  labelNames: ['operation', 'result'],
});
