import { Counter } from 'prom-client';

export const deadCounted = new Counter({
  name: 'heraut_dead_letters_total',
  help: 'Deliveries that ended without success and are kept as dead letters, by the state in which they ended.',
  labelNames: ['state'],
});

// A series that begins with its first event hides that one from `increase`.
for (const state of ['failed', 'expired', 'unknown']) deadCounted.inc({ state }, 0);
