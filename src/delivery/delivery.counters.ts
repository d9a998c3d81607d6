import { Counter, Histogram } from 'prom-client';

export const attemptsCounted = new Counter({
  name: 'heraut_delivery_attempts_total',
  help: 'Attempts to deliver, by guarantee and by what came of the delivery.',
  labelNames: ['guarantee', 'outcome'],
});

export const callsNotMade = new Counter({
  name: 'heraut_calls_not_made_total',
  help: 'Calls to receivers that could not be made for trouble of ours, without using up an attempt.',
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

export const callsSentAgain = new Counter({
  name: 'heraut_calls_sent_again_total',
  help: 'Calls that were sent again at once on a new connection, without using up an attempt, by what was lost.',
  labelNames: ['lost'],
});

export const deliveredSeconds = new Histogram({
  name: 'heraut_delivery_seconds',
  help: 'Seconds from the acceptance of a notification to the success of a delivery, by its last way to a worker: fresh (at once), due (its first attempt waited in the ledger), slow (repeated or released).',
  labelNames: ['lane'],
  // Beyond a minute the retry schedule decides, which lasts a day.
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43_200, 172_800],
});

export const attemptSeconds = new Histogram({
  name: 'heraut_attempt_duration_seconds',
  help: 'Seconds that a call to a receiver took, by its answer: 2xx, 3xx, 4xx, 5xx, or none.',
  labelNames: ['answer'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
});
