import { Counter } from 'prom-client';

export const bodiesErasedCounted = new Counter({
  name: 'heraut_bodies_erased_total',
  help: 'Bodies of notifications that were erased, by why: their retention, or an erasure that was asked for.',
  labelNames: ['because'],
});

export const daysCounted = new Counter({
  name: 'heraut_retention_days_total',
  help: 'Days past RETENTION_DAYS that were looked at, by what became of them.',
  labelNames: ['outcome'],
});

export const exportFailuresCounted = new Counter({
  name: 'heraut_export_failures_total',
  help: 'Exports of a day that failed; the day is kept, and exported again in the next round of a dispatcher.',
});
