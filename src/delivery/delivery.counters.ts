import { Counter } from 'prom-client';

export const attemptsCounted = new Counter({
  name: 'heraut_delivery_attempts_total',
  help: 'HTTP calls to receivers, by guarantee and by what came of the delivery.',
  labelNames: ['guarantee', 'outcome'],
});

export const filteredCounted = new Counter({
  name: 'heraut_deliveries_filtered_total',
  help: 'Messages of the queue that were not sent because their delivery had ended before: filtered by idempotency.',
});

export const heldCounted = new Counter({
  name: 'heraut_deliveries_held_total',
  help: 'Deliveries that a worker gave back to the ledger because they could not be sent now, by reason.',
  labelNames: ['reason'],
});
