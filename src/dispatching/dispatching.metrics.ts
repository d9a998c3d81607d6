import { Gauge } from 'prom-client';
import { ageGauge } from '../infra/age-gauge.js';

/*
 * Values that dispatchers read of the ledger and the queue (measurements.service.ts). Each has a label, and so no value
 * in a process that has not measured. Several dispatchers measure the same ledger: their values are not summed.
 */

export const roundAge = ageGauge(
  'heraut_dispatcher_round_age_seconds',
  'Seconds since a task of the dispatcher has last worked, or a part of a long round of it; of several processes the largest.',
  {
    label: 'task',
    least: {
      name: 'heraut_dispatcher_least_round_age_seconds',
      help: 'As heraut_dispatcher_round_age_seconds; of several processes the least.',
    },
  },
);

const ofLedger = (name: string, help: string, labelNames: string[]) =>
  new Gauge({ name, help, labelNames, aggregator: 'max' });

export const backlogGauge = ofLedger(
  'heraut_backlog_deliveries',
  'Deliveries that have not ended, by state: queued, sending, waiting, held. See heraut_counts_estimated.',
  ['state'],
);
export const dueGauge = ofLedger(
  'heraut_due_deliveries',
  'Deliveries that are due and not handed out yet, by the lane that they will take: due, slow.',
  ['lane'],
);
export const heldGauge = ofLedger('heraut_held_deliveries', 'Held deliveries, by reason.', ['reason']);
export const deadGauge = ofLedger(
  'heraut_dead_letters',
  'Dead letters that are kept, by state: failed, expired, unknown.',
  ['state'],
);
export const estimatedGauge = ofLedger(
  'heraut_counts_estimated',
  '1 while this count is an estimate of Postgres, because there are more than 10,000; else 0.',
  ['of'],
);
export const oldestGauge = ofLedger(
  'heraut_oldest_delivery_seconds',
  'Age of the oldest delivery that is due (since its time) or queued (since it was handed to the queue); 0 if there is none.',
  ['state'],
);
export const rolesGauge = ofLedger('heraut_role_processes', 'Processes that are alive, by role.', ['role']);
export const ledgerBytesGauge = ofLedger(
  'heraut_ledger_bytes',
  'Bytes of the database: tables and indexes of the notifications of a day with their deliveries and attempts (beyond 60 days: older), and all else (rest).',
  ['day'],
);
export const unsentGauge = ofLedger(
  'heraut_subscription_unsent_deliveries',
  'Waiting and held deliveries of the subscriptions in most trouble, at most 20; counted up to 1000.',
  ['subscription'],
);
export const subscriptionDeadGauge = ofLedger(
  'heraut_subscription_dead_letters',
  'Dead letters of the same subscriptions; counted up to 1000.',
  ['subscription'],
);

// A queue in memory is that of one process: there each has its own, and they are summed. Of RabbitMQ's one process
// tells.
export const queueDepthGauge = new Gauge({
  name: 'heraut_queue_messages',
  help: 'Messages, of up to 64 deliveries, that no worker has taken yet, by lane.',
  labelNames: ['lane'],
});
export const queueAgeGauge = ofLedger(
  'heraut_queue_age_seconds',
  'How long ago, at most, the first message in a lane was handed to the queue; 0: the lane is empty.',
  ['lane'],
);
export const replaysGauge = ofLedger(
  'heraut_replays',
  'Replays, and cancelling and closing by selection, that have not ended, by kind and state: scheduled, running, paused.',
  ['kind', 'state'],
);
export const replayDeliveriesGauge = ofLedger(
  'heraut_replay_deliveries',
  'Deliveries of those replays: done, and left of what was counted when they were made.',
  ['kind', 'progress'],
);
